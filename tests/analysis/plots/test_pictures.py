"""All pictures: they show what they claim, at 1, 30 and 500 jobs, and leave pyplot alone."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Annotation

from edgeflow_opt import EpochProblem, SolveResult, solve
from edgeflow_opt.analysis import History, PolicyComparison
from edgeflow_opt.analysis.plots import (
    plot_gantt,
    plot_gap,
    plot_policies,
    plot_profile,
    plot_sweep,
    plot_usage,
    save,
    style,
    usage_figure,
)
from edgeflow_opt.analysis.plots.style import figure_of, job_colour, new_axes, rendered
from edgeflow_opt.analysis.plots.usage import used_share
from edgeflow_opt.errors import UsageError
from edgeflow_opt.workloads import generate_problem
from tests.analysis.helpers import policies, two_solvers


@cache
def planned(num_jobs: int) -> tuple[EpochProblem, SolveResult]:
    """Return an instance of a size, with a schedule."""
    problem = generate_problem(num_jobs, 12, 1, restart_s=10)
    return problem, solve(problem, "edgeflow-select")


PICTURES: dict[str, Any] = {
    **{f"gantt {n}": lambda ax, n=n: plot_gantt(*planned(n), ax=ax) for n in (1, 30, 500)},
    **{f"usage {n}": lambda ax, n=n: plot_usage(*planned(n), ax=ax) for n in (1, 30, 500)},
    "profile": lambda ax: plot_profile(two_solvers(), ax=ax),
    "value profile": lambda ax: plot_profile(two_solvers(), "value", ax=ax),
    "gap": lambda ax: plot_gap(two_solvers(), ax=ax),
    "proven gap": lambda ax: plot_gap(two_solvers(), "proven", ax=ax),
    "sweep": lambda ax: plot_sweep(policies(), ax=ax),
    "policies": lambda ax: plot_policies(policies(), ax=ax),
}


@pytest.mark.parametrize("name", PICTURES)
def test_axes_in_and_out(name: str) -> None:
    """A picture is drawn where it is told, is not blank, and fits its figure."""
    given = new_axes(8, 5)
    assert PICTURES[name](given) is given
    figure = figure_of(given)
    image = _pixels(figure)
    assert image.shape == (400, 640, 3)
    painted = (image < 250).any(axis=2)
    assert 0.01 < painted.mean() < 0.95
    frame = np.concatenate([painted[0], painted[-1], painted[:, 0], painted[:, -1]])
    # Nothing is cut off: texts that are would touch the frame (bands and axes may, at the right).
    assert frame.mean() < 0.02


@pytest.mark.parametrize("name", ["gantt 30", "gap", "sweep"])
def test_pictures_are_reproducible(name: str) -> None:
    """The same picture drawn twice gives the same bytes."""
    assert rendered(PICTURES[name](None), "svg") == rendered(PICTURES[name](None), "svg")


def _pixels(figure: Any) -> np.ndarray[Any, Any]:
    import io

    from matplotlib.image import imread

    data = imread(io.BytesIO(rendered(figure, "png", dpi=80)))
    return np.asarray(data[:, :, :3] * 255).astype(int)


def test_no_pyplot() -> None:
    """Drawing and saving pictures never loads pyplot, nor changes its settings."""
    script = (
        "import sys, matplotlib as mpl; before = mpl.rcParams.copy()\n"
        "from tests.analysis.helpers import policies, two_solvers\n"
        "from edgeflow_opt.analysis.plots import plot_gap, plot_sweep\n"
        "from edgeflow_opt.analysis.plots.style import rendered\n"
        "rendered(plot_gap(two_solvers()), 'svg'); rendered(plot_sweep(policies()), 'png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert mpl.rcParams.copy() == before\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_notebook_shows_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the kernel of a notebook pictures are figures of pyplot until they are put on a page."""
    from matplotlib import pyplot

    from edgeflow_opt.analysis.report.page import inline_svg

    assert not style._in_notebook()
    monkeypatch.setattr(style, "_in_notebook", lambda: True)
    before = pyplot.get_fignums()
    ax = new_axes(3.0, 2.0)
    assert len(pyplot.get_fignums()) == len(before) + 1
    inline_svg(ax, "n", "nothing")
    assert pyplot.get_fignums() == before


@pytest.mark.parametrize(
    ("scales", "kind"),
    [
        ((1.0, 2.0, 4.0), "log"),
        ((1.0, 2.0, 3.0), "linear"),
        ((1.0, 3.0), "linear"),
        ((0.5, 4.0), "log"),
    ],
)
def test_doubling_sweeps_are_logarithmic(scales: tuple[float, ...], kind: str) -> None:
    """Settings that double stand at equal distances, others where they are; all are named."""
    row = policies().rows[0]
    rows = tuple(dataclasses.replace(row, settings={"arrival_scale": scale}) for scale in scales)
    ax = plot_sweep(PolicyComparison(rows=rows))
    assert ax.get_xscale() == kind
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"{s:g}" for s in scales]


def test_bands_of_shares_are_shares() -> None:
    """Bands of a share stay within [0, 1], those of another measure do not have to."""
    for measure, within in (("dsr", True), ("met", False)):
        ax = plot_sweep(policies(), measure=measure)
        ends = np.concatenate([band.get_paths()[0].vertices[:, 1] for band in ax.collections])
        assert bool(ends.min() >= 0.0) is within


def test_gantt_says_what_becomes_of_jobs() -> None:
    """Title, rows of the strip and labels of sites carry the counts of the schedule."""
    problem, result = planned(30)
    ax = plot_gantt(problem, result)
    met = result.schedule.met
    assert ax.get_title(loc="left") == f"edgeflow-select: {met} of 30 deadlines met"
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert any(text.startswith("cloud\n") for text in labels)
    assert f"{met} met" in labels
    assert any(text.startswith(f"{30 - met} missed") for text in labels)
    legend = ax.get_legend()
    assert legend is not None
    assert "misses its deadline" in [text.get_text() for text in legend.get_texts()]


def test_a_job_keeps_its_colour() -> None:
    """Two schedules of one instance give a job the same colour; 21 in a row all differ."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_hex

    problem, result = planned(30)
    for schedule in (result, solve(problem, "greedy")):
        ax = plot_gantt(problem, schedule)
        fills = next(
            c
            for c in ax.collections
            if isinstance(c, PolyCollection) and len(c.get_facecolors()) > 1
        )
        used = {to_hex(colour) for colour in fills.get_facecolors()}
        jobs = {a.job for a in schedule.schedule.allocations}
        expected = {job_colour(i) for i, job in enumerate(problem.jobs) if job.id in jobs}
        assert used == expected
    assert len({job_colour(index) for index in range(21)}) == 21


def test_missed_jobs_are_named() -> None:
    """Each of 16 missed jobs is named and no two names overlap; of very many the first are listed."""
    problem, result = planned(30)
    ax = plot_gantt(problem, result)
    figure = figure_of(ax)
    figure.draw_without_rendering()
    outcomes = zip(problem.jobs, result.schedule.outcomes, strict=True)
    missed = {job.id for job, outcome in outcomes if not outcome.met}
    named = [text for text in ax.texts if isinstance(text, Annotation)]
    assert sorted(text.get_text() for text in named) == sorted(missed)
    boxes = [text.get_window_extent() for text in named]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    problem, result = planned(500)
    ax = plot_gantt(problem, result)
    (listed,) = [text.get_text() for text in ax.texts if isinstance(text, Annotation)]
    late = [
        (job.deadline, job.id)
        for job, outcome in zip(problem.jobs, result.schedule.outcomes, strict=True)
        if not outcome.met
    ]
    told, _, rest = (
        listed.removeprefix("Missed, by deadline: ").replace("\n", "").rpartition("and ")
    )
    names = told.rstrip(", ").split(", ")
    assert names == [name for _, name in sorted(late)][: len(names)]
    assert rest == f"{len(late) - len(names)} more"


def test_usage_is_the_integral() -> None:
    """The share in the title is that of the allocations; bins of long histories keep the mean."""
    problem, result = planned(500)
    history = History.of_schedule(problem, result)
    cloud = problem.sites[0]
    held = sum(a.gpus * (a.end - a.start) for a in history.allocations if a.site == cloud.name)
    usable = cloud.capacity_at(0) * (history.end - history.start)
    assert used_share(history, cloud) == pytest.approx(held / usable)
    from edgeflow_opt.analysis.plots.usage import _binned

    edges = np.linspace(history.start, history.end, 8)
    times, units = history.usage(cloud)
    means = _binned(times, units, edges)
    assert means.mean() * (history.end - history.start) == pytest.approx(held)


def test_a_panel_for_each_site() -> None:
    """The figure of all sites has their panels in the order of the instance."""
    figure = usage_figure(*planned(30))
    assert [ax.get_ylabel() for ax in figure.axes] == ["GPUs", "servers"]


def test_sweep_draws_means_and_bounds() -> None:
    """The lines of a sweep are the means, the dashed one the mean of the bounds."""
    ax = plot_sweep(policies(), "arrival_scale", "met")
    lines = {line.get_label(): list(line.get_ydata()) for line in ax.get_lines()}
    assert lines["a"] == [2.0, 4.0]
    assert lines["b"] == [4.0, 6.0]
    assert lines["clairvoyant bound"] == [9.0, 9.0]
    with pytest.raises(UsageError, match="setting 'tide' is not swept"):
        plot_sweep(policies(), "tide")


@pytest.mark.parametrize(
    ("end", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_files(tmp_path: Path, end: str, magic: bytes) -> None:
    """Each format is written by the end of the name, the same each time."""
    path = tmp_path / f"picture.{end}"
    save(plot_gantt(*planned(1)), path)
    first = path.read_bytes()
    assert first.startswith(magic)
    save(plot_gantt(*planned(1)), path)
    assert path.read_bytes() == first


def test_bad_pictures(tmp_path: Path) -> None:
    """Unknown formats and sites, schedules of other instances and missing plans are refused."""
    problem, result = planned(1)
    with pytest.raises(UsageError, match=r"must end in one of \.png, \.svg, \.pdf"):
        save(new_axes(), tmp_path / "picture.gif")
    with pytest.raises(UsageError, match="site 'moon' is not known"):
        plot_usage(problem, result, site="moon")
    with pytest.raises(UsageError, match="needs a schedule"):
        plot_gantt(problem)
    with pytest.raises(UsageError, match="not those of the instance"):
        plot_gantt(planned(30)[0], result)
    empty = dataclasses.replace(result.schedule, outcomes=(), allocations=())
    with pytest.raises(UsageError, match="has no plan"):
        plot_gantt(problem, empty)


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib the error says how to get it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'edgeflow-opt\[plot\]'"):
        plot_gantt(*planned(1))
