"""The generated files: the instance as JSON, .dzn, MPS and LP, and its proven optimum."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plan_master import build_plan_master
from edgeflow_opt.problem import problem_to_dict
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.exchange import export
from models import instances

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem

FOLDER = Path(__file__).parent

#: The instance of each folder, which has the name of the formulation.
INSTANCES = {
    "malleable": instances.malleable,
    "moldable": instances.moldable,
    "plan": instances.malleable,
}


def files() -> dict[str, str]:
    """Return the text of every generated file by its path within the folder of models."""
    made = {}
    for name, make in INSTANCES.items():
        problem = make()
        made[f"{name}/instance.json"] = json.dumps(problem_to_dict(problem), indent=1) + "\n"
        made[f"{name}/instance.dzn"] = _plan_data(problem) if name == "plan" else _data(problem)
        made[f"{name}/model.mps"] = export(problem, name, "mps")
        made[f"{name}/model.lp"] = export(problem, name, "lp")
        result = solve(problem, "cpsat", levels=1, time_limit_s=60.0)
        assert result.status == "optimal"
        optimum = {"met_weight": result.value, "bound": result.bound}
        made[f"{name}/optimum.json"] = json.dumps(optimum) + "\n"
    return made


def _list(values: Iterable[object]) -> str:
    texts = (str(v).lower() if isinstance(v, bool) else str(v) for v in values)
    return f"[{', '.join(texts)}]"


def _whole(values: Iterable[float]) -> list[int]:
    """Return numbers that are whole as such; the model has no others."""
    numbers = [int(value) for value in values]
    assert numbers == list(values)
    return numbers


def _matrix(rows: object) -> str:
    lines = (", ".join(str(v) for v in row) for row in np.asarray(rows).tolist())
    return "[| " + "\n | ".join(lines) + " |]"


def _data(problem: EpochProblem) -> str:
    """Return the data of the malleable and the moldable model."""
    arrays = arrays_of(problem)
    entries = {
        "n": arrays.num_jobs,
        "T": arrays.num_slots,
        "K": arrays.num_sites,
        "M": arrays.num_modes,
        "t": f"array1d(0..{arrays.num_slots}, {_list(_whole(arrays.boundaries))})",
        "capacity": _matrix(arrays.capacity),
        "weight": _list(_whole(arrays.weight)),
        "work": _list(_whole(arrays.work)),
        "deadline": _list(_whole(arrays.deadline)),
        "first": _list((arrays.first_slot + 1).tolist()),
        "restart_s": _list(_whole(arrays.restart_s)),
        "migration_s": _list(_whole(arrays.migration_s)),
        "last_site": _list((arrays.last_site + 1).tolist()),
        "must_meet": _list(arrays.must_meet.tolist()),
        "mode_job": _list((arrays.mode_job + 1).tolist()),
        "mode_site": _list((arrays.mode_site + 1).tolist()),
        "mode_units": _list(arrays.mode_units.tolist()),
        "mode_rate": _list(_whole(arrays.mode_rate)),
    }
    return "".join(f"{name} = {value};\n" for name, value in entries.items())


def _plan_data(problem: EpochProblem) -> str:
    """Return the data of the plan master: all its plans."""
    arrays = arrays_of(problem)
    master = build_plan_master(arrays)
    shape = (len(master.job), arrays.num_sites, arrays.num_slots)
    units = np.zeros(shape, dtype=np.int64)
    plan, slot = np.nonzero(master.plans >= 0)
    mode = master.plans[plan, slot]
    units[plan, arrays.mode_site[mode], slot] = arrays.mode_units[mode]
    ranges = ", ".join(f"1..{size}" for size in shape)
    entries = {
        "n": arrays.num_jobs,
        "T": arrays.num_slots,
        "K": arrays.num_sites,
        "P": shape[0],
        "capacity": _matrix(arrays.capacity),
        "weight": _list(_whole(arrays.weight)),
        "must_meet": _list(arrays.must_meet.tolist()),
        "plan_job": _list((master.job + 1).tolist()),
        "units": f"array3d({ranges}, {_list(units.ravel().tolist())})",
    }
    return "".join(f"{name} = {value};\n" for name, value in entries.items())
