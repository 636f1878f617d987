"""The decorators of compiled functions, with what keeps their compilation short.

A kernel that only others call needs no wrapper for Python, and with numpy's rules for division no
code that raises. Every kernel must be compiled for one set of types: a literal as argument (-1,
True), or a variable that begins as one, makes numba compile it again for that value.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_COMMON: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
_ONLY_FROM_KERNELS: dict[str, Any] = {"no_cpython_wrapper": True}

#: Decorator of kernels that only other kernels call. They are compiled into those, which are
#: cached; a call from Python fails.
kernel: Any = njit(**_COMMON, **_ONLY_FROM_KERNELS)

#: Decorator of kernels that are called from Python; their code is kept on disk.
entry: Any = njit(cache=True, **_COMMON)

#: Decorator of kernels that only other kernels call, those of several modules: each is compiled
#: once, kept on disk, and linked into whatever calls it.
shared: Any = njit(cache=True, **_COMMON, **_ONLY_FROM_KERNELS)
