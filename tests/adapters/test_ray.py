"""Ray itself, with GPUs and sites that are names only: placement groups, and elastic trials of Tune."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

from edgeflow_opt.adapters import Cluster as ClusterProtocol
from edgeflow_opt.adapters import advance
from edgeflow_opt.adapters.ray import RayCluster, SessionResources, bundles_of, sites_of
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Job, Mode, Site
from edgeflow_opt.service import EpochSession, SessionOptions

CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 4),))
EDGE = Site(name="edge", kind="edge", capacity=((0.0, 1),))


def modes(*gpus: int, edge: int = 0) -> tuple[Mode, ...]:
    """Return modes of a rate that grows with the GPUs."""
    found = tuple(Mode(site="cloud", gpus=count, rate=float(count)) for count in gpus)
    return found if not edge else (*found, Mode(site="edge", gpus=edge, rate=0.5))


def session_over(sites: tuple[Site, ...], now: float) -> EpochSession:
    """Return a session that decides in this process, in milliseconds."""
    return EpochSession(sites, now=now, options=SessionOptions(rungs=()), isolated=False)


def test_bundles_say_site_and_gpus() -> None:
    """A cloud mode is a bundle for each GPU, an edge mode one server with all its GPUs."""
    cloud, edge = modes(2, edge=4)
    assert bundles_of(cloud, CLOUD) == [{"CPU": 1.0, "GPU": 1.0, "cloud": 1.0}] * 2
    assert bundles_of(edge, EDGE, cpus_per_gpu=0.0) == [{"GPU": 4.0, "edge": 1.0}]


def test_without_the_library_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"adapter of Ray needs ray.*edgeflow-opt\[ray\]"):
        RayCluster()


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Return Ray, connected to a cluster of its own: 4 GPUs in the cloud, an edge server of 2."""
    library = pytest.importorskip("ray", reason="needs the extra ray, which the tests do not bring")
    with pytest.raises(UsageError, match=r"call ray\.init first"):
        RayCluster()
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 80 << 20}
    head = {"num_cpus": 8, "num_gpus": 4, "resources": {"cloud": 4}, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**head, **memory})
    cluster.add_node(num_cpus=2, num_gpus=2, resources={"edge": 1}, **memory)
    library.init(address=cluster.address, log_to_driver=False, include_dashboard=False)
    yield library
    library.shutdown()
    cluster.shutdown()


def test_jobs_get_placement_groups_and_make_room(ray: Any, tmp_path: Path) -> None:
    """A tight job takes the GPUs of a loose one, which goes on from its checkpoint; all are done."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    work = 8

    @ray.remote(num_cpus=1, num_gpus=1)
    def train(checkpoint: str, steps: int, seconds: float) -> None:
        # A byte for each step, so that a stop at any time leaves a good checkpoint.
        with Path(checkpoint).open("ab", buffering=0) as file:
            while file.tell() < steps:
                time.sleep(seconds)
                file.write(b".")

    launched: list[tuple[str, Mode, list[dict[str, float]]]] = []

    def launcher(name: str, seconds: float) -> Any:
        def launch(group: Any, mode: Mode) -> Any:
            launched.append((name, mode, group.bundle_specs))
            inside = PlacementGroupSchedulingStrategy(placement_group=group)
            task = train.options(scheduling_strategy=inside)
            return task.remote(str(tmp_path / name), work, seconds)

        return launch

    def left() -> float:
        path = tmp_path / "loose"
        return float(work - path.stat().st_size) if path.exists() else float(work)

    def fails(group: Any, mode: Mode) -> Any:
        raise OSError("no program")

    sites = sites_of({"cloud": "cloud", "edge": "edge"})
    assert [site.capacity[0][1] for site in sites] == [4, 1]
    cluster = RayCluster(ready_s=20.0)
    assert isinstance(cluster, ClusterProtocol)
    session = session_over(sites, cluster.now())
    loose = Job(id="loose", deadline=cluster.now() + 5000.0, work=work, modes=modes(4))
    cluster.submit(loose, launcher("loose", 0.5), work_left=left)
    advance(cluster, session)
    while left() > work - 2:
        time.sleep(0.05)
    # By its rates it needs every second from now on.
    tight = Job(id="tight", deadline=cluster.now() + 30.0, work=100.0, modes=modes(4))
    cluster.submit(tight, launcher("tight", 0.05))
    small = Job(id="small", deadline=None, work=10.0, modes=modes(edge=2))
    cluster.submit(small, launcher("small", 0.05))
    cluster.submit(Job(id="bad", deadline=None, work=1.0, modes=modes(edge=2)), fails)
    with pytest.raises(UsageError, match="job 'tight': is there already"):
        cluster.submit(tight, fails)
    decision = advance(cluster, session)
    assert decision.allocation["tight"].gpus == 4
    assert "loose" not in decision.allocation
    stopped = left()
    assert 0 < stopped <= work - 2
    known = session.view.jobs["loose"].job.work
    assert session.view.jobs["loose"].left_at(cluster.now()) <= min(known, stopped + 1e-3)
    until = time.monotonic() + 60.0
    while session.view.jobs:
        assert time.monotonic() < until, session.view.jobs
        advance(cluster, session)
        time.sleep(0.1)
    assert [name for name, _, _ in launched if name != "small"] == ["loose", "tight", "loose"]
    assert launched[0][2] == [{"CPU": 1.0, "GPU": 1.0, "cloud": 1.0}] * 4
    edge = next(bundles for name, _, bundles in launched if name == "small")
    assert edge == [{"CPU": 2.0, "GPU": 2.0, "edge": 1.0}]
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == dict.fromkeys(
        ("loose", "tight", "small"), work
    )
    assert str(cluster.failures.pop("bad")) == "no program"
    assert cluster.failures == {}
    cluster.close()


def test_trials_of_tune_grow_and_shrink(ray: Any, tmp_path: Path) -> None:
    """Two trials share four GPUs as the plan says, go on from checkpoints, and never hold more."""
    from ray import tune
    from ray.tune.schedulers import ResourceChangingScheduler

    steps = 6

    class Elastic(tune.Trainable):
        """Counts, and tells what it holds."""

        def setup(self, config: dict[str, Any]) -> None:
            self.done = 0

        def step(self) -> dict[str, Any]:
            time.sleep(0.1)
            self.done += 1
            gpus = int(self.trial_resources.required_resources["GPU"])
            return {"steps": self.done, "gpus": gpus, "done": self.done == steps}

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            Path(checkpoint_dir, "steps").write_text(str(self.done))

        def load_checkpoint(self, checkpoint_dir: str) -> None:
            self.done = int(Path(checkpoint_dir, "steps").read_text())

    begin = time.time()

    def describe(trial: Any, result: dict[str, Any]) -> Job:
        # The first is late unless it has three GPUs, which leaves one for the second.
        first = trial.config["job"] == 0
        left = 400.0 * (steps + 1 - result["steps"])
        return Job(
            id=trial.trial_id,
            deadline=begin + 1200.0 if first else None,
            work=left,
            modes=modes(1, 2, 3) if first else modes(1),
        )

    session = session_over(sites_of({"cloud": "cloud"}), begin)
    resources = SessionResources(session, describe)
    asked: list[dict[int, int]] = []

    def ask(controller: Any, trial: Any, result: dict[str, Any], scheduler: Any) -> Any:
        asked.append(
            {
                t.config["job"]: int(t.placement_group_factory.required_resources["GPU"])
                for t in controller.get_trials()
                if t.status == "RUNNING"
            }
        )
        return resources(controller, trial, result, scheduler)

    start = tune.PlacementGroupFactory([{"CPU": 1.0, "GPU": 1.0, "cloud": 1.0}])
    tuner = tune.Tuner(
        tune.with_resources(Elastic, start),
        param_space={"job": tune.grid_search([0, 1])},
        tune_config=tune.TuneConfig(
            scheduler=ResourceChangingScheduler(resources_allocation_function=ask),
            reuse_actors=False,
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    )
    handler = signal.getsignal(signal.SIGINT)
    try:
        results = tuner.fit()
    finally:
        # Tune leaves Ctrl-C to itself.
        signal.signal(signal.SIGINT, handler)
    assert [result.metrics["steps"] for result in results] == [steps, steps]
    assert max(sum(held.values()) for held in asked) <= 4
    assert results[0].metrics["gpus"] == 3
    assert len(session.view.jobs) <= 1


def test_a_trial_that_the_plan_stops_keeps_what_it_has() -> None:
    """Tune cannot take all from a trial: the session is told; a shrink comes at its next result."""
    tune = pytest.importorskip(
        "ray.tune", reason="needs the extra ray, which the tests do not bring"
    )
    session = session_over((CLOUD,), 0.0)
    resources = SessionResources(session, lambda trial, result: result["job"], clock=lambda: 10.0)
    trials: list[Any] = []

    def trial(name: str, gpus: int) -> Any:
        bundle = {"CPU": 1.0, "GPU": float(gpus), "cloud": float(gpus)}
        factory = tune.PlacementGroupFactory([bundle])
        made = SimpleNamespace(
            trial_id=name, placement_group_factory=factory, is_finished=lambda: False
        )
        trials.append(made)
        return made

    def ask(which: Any, job: Job) -> Any:
        controller = SimpleNamespace(get_trials=lambda: trials)
        return resources(controller, which, {"job": job}, None)

    loose = Job(id="loose", deadline=None, work=1000.0, modes=modes(1, 4))
    first, second = trial("loose", 4), trial("tight", 1)
    assert ask(first, loose) is None
    tight = Job(id="tight", deadline=40.0, work=85.0, modes=modes(1, 3))
    assert ask(second, tight).required_resources == {"CPU": 1.0, "GPU": 3.0, "cloud": 3.0}
    assert ask(first, loose).required_resources == {"CPU": 1.0, "GPU": 1.0, "cloud": 1.0}
    whole = Job(id="whole", deadline=35.0, work=99.0, modes=modes(4))
    third = trial("whole", 4)
    trials.remove(second)
    first.placement_group_factory = ask(first, loose) or first.placement_group_factory
    assert ask(third, whole) is None
    assert "tight" not in session.view.jobs
    assert ask(first, loose) is None
    held = session.view.jobs["loose"].mode
    assert held is not None
    with pytest.raises(UsageError, match="must have the id of its trial, 'loose'"):
        ask(first, whole)
    # An experiment that is taken up again has its session again.
    copied = cloudpickle.loads(cloudpickle.dumps(resources))
    assert copied._session.view == session.view
    copied._session.close()
