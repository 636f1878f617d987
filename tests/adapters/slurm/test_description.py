"""What jobs of Slurm say of themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgeflow_opt.adapters.slurm import SlurmJob, describe_comment
from edgeflow_opt.adapters.slurm.description import may_shrink
from edgeflow_opt.errors import InstanceError
from edgeflow_opt.problem import Mode


def slurm_job(comment: str, **changes: Any) -> SlurmJob:
    """Return a held job with a comment."""
    settings: dict[str, Any] = {"deadline": 900.0, **changes}
    return SlurmJob(
        id=3, name="", user="", states=frozenset({"PENDING"}), partitions=("cloud",),
        comment=comment, **settings,
    )  # fmt: skip


def marked(**description: Any) -> str:
    """Return a comment with the mark, and with something of another tool."""
    known = {"work": 12, "modes": [{"site": "cloud", "gpus": 2, "rate": 1.5}], **description}
    return json.dumps({"wandb": "x", "edgeflow": known})


def test_a_comment_describes_a_job() -> None:
    """Work, modes and losses are those of the comment, the deadline is that of Slurm."""
    job = describe_comment(slurm_job(marked(weight=2, restart_s=5)))
    assert job is not None
    assert (job.id, job.work, job.weight, job.restart_s, job.deadline) == ("3", 12, 2, 5, 900.0)
    assert job.modes == (Mode(site="cloud", gpus=2, rate=1.5),)
    assert job.malleable


def test_a_comment_may_have_its_own_deadline() -> None:
    """A deadline of the comment, or null in it, comes before --deadline."""
    own = describe_comment(slurm_job(marked(deadline=700.5)))
    none = describe_comment(slurm_job(marked(deadline=None)))
    assert own is not None
    assert none is not None
    assert (own.deadline, none.deadline) == (700.5, None)


def test_a_job_that_may_not_be_requeued_keeps_its_mode() -> None:
    """Without --requeue a job cannot be stopped; one that shrinks still can become smaller."""
    kept = describe_comment(slurm_job(marked(), requeue=False))
    assert kept is not None
    assert not kept.malleable
    shrinking = slurm_job(marked(shrink=True), requeue=False)
    described = describe_comment(shrinking)
    assert described is not None
    assert described.malleable
    assert may_shrink(shrinking)
    assert not may_shrink(slurm_job("edgeflow"))


@pytest.mark.parametrize("comment", ["", "about edgeflow", '{"other": 1}', '["edgeflow"]', "{x"])
def test_other_comments_are_no_mark(comment: str) -> None:
    """A job whose comment has no mark is none of ours, whatever the comment is."""
    assert describe_comment(slurm_job(comment)) is None


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("{edgeflow: {work: 12}}", r"is not JSON.*single quotes"),
        ('{"edgeflow": 3}', "must be a JSON object, got 3"),
        ('{"edgeflow": {}, "edgeflow": {}}', "is given more than once"),
        (marked(work=0), r"work: must be a number > 0, got 0"),
        (marked(modes=[]), "modes: "),
        (marked(gpus=3), r"'gpus': is not a known key; known are work, modes"),
        (marked(modes=[{"site": "cloud", "gpus": 1}]), "rate: is missing"),
    ],
)
def test_faults_behind_the_mark_are_named(comment: str, words: str) -> None:
    """A marked job that is at fault is told with field and rule, and never overlooked."""
    with pytest.raises(InstanceError, match=words):
        describe_comment(slurm_job(comment))
