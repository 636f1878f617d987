"""The tree of branch and price: no node is lost, so that its bound holds whenever it is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edgeflow_opt.formulations.plan_columns import JobPlans
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.plan.generation import NodeAnswer
from edgeflow_opt.solvers.plan.relaxation import Relaxed
from edgeflow_opt.solvers.plan.tree import PlanTree
from edgeflow_opt.solvers.price import dual_bound
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from tests.solvers.instances import small


def test_a_node_that_is_broken_off_stays_open() -> None:
    """Ctrl-C, a stopped relaxation and one without a way to branch leave the bound as it is."""
    arrays = arrays_of(small())
    root = dual_bound(arrays)
    # A job met in full by one whole plan, which the search for a schedule does not take.
    plans = JobPlans(np.array([0]), np.array([[0, 0, -1]]))
    whole = Relaxed(
        value=1.0, share=np.ones(1), met=np.array([1.0, 0.0, 0.0, 0.0]), worth=np.zeros(4),
        prices=np.zeros((1, 3)), lacking=0.0,
    )  # fmt: skip
    answers: list[Any] = [
        KeyboardInterrupt("struck"),
        NodeAnswer(dual=root, relaxed=None, converged=False),
        NodeAnswer(dual=root, relaxed=whole, converged=True),
    ]

    def node(*_: Any) -> NodeAnswer:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        found: NodeAnswer = answer
        return found

    generation: Any = SimpleNamespace(data=pricing_data(arrays), node=node, plans=lambda: plans)
    tree = PlanTree(
        arrays, generation, root, value=lambda: 0.0, aim=lambda: 1.0, rounded=lambda bound: bound,
        take=lambda *_: False,
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt, match="struck"):
        tree.step()
    assert (tree.nodes, tree.done, tree.bound) == (0, False, root.bound)
    tree.step()
    assert (tree.nodes, tree.done, tree.bound) == (1, False, root.bound)
    tree.step()
    assert (tree.nodes, tree.done, tree.bound) == (2, True, root.bound)
    assert tree.open_nodes == 1


def test_a_node_below_the_aim_is_dropped() -> None:
    """What cannot hold a better schedule is not looked at again, and bounds nothing."""
    arrays = arrays_of(small())
    root = dual_bound(arrays)
    generation: Any = SimpleNamespace(data=pricing_data(arrays))
    tree = PlanTree(
        arrays, generation, root, value=lambda: 0.0, aim=lambda: root.bound + 1.0,
        rounded=lambda bound: bound, take=lambda *_: False,
    )  # fmt: skip
    tree.step()
    assert (tree.nodes, tree.done, tree.bound) == (0, True, -np.inf)
