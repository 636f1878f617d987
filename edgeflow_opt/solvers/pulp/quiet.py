"""PuLP's HiGHS within this process, without the banner that no option of PuLP silences."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.solvers.mip.highs import quiet_highs

#: Options of HiGHS by the attributes that PuLP keeps them in.
_OPTIONS = {
    "mip_rel_gap": "gapRel",
    "mip_abs_gap": "gapAbs",
    "threads": "threads",
    "time_limit": "timeLimit",
}

#: Further settings of PuLP under names that HiGHS does not know them by; None = not for HiGHS.
_RENAMED = {"logPath": "log_file", "warmStart": None}


def quiet_solver(pulp: Any, settings: dict[str, Any]) -> Any:
    """Return PuLP's solver ``HiGHS`` with `settings`, which prints nothing (PuLP 3.3 and 4)."""

    class QuietHiGHS(pulp.HiGHS):
        def createAndConfigureSolver(self, lp: Any) -> None:  # noqa: N802
            # As PuLP does; but its HiGHS prints as soon as it is made, before any option is set.
            native = lp.solverModel = quiet_highs()
            for option, attribute in _OPTIONS.items():
                if getattr(self, attribute) is not None:
                    native.setOptionValue(option, getattr(self, attribute))
            for name, value in self.optionsDict.items():
                known = _RENAMED.get(name, name)
                if known is not None:
                    native.setOptionValue(known, value)

    return QuietHiGHS(**settings)
