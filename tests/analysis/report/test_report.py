"""Reports, as text and in a real browser."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread, imsave
from numpy.typing import NDArray

from edgeflow_opt.analysis import Comparison, History, PolicyComparison
from edgeflow_opt.analysis.report import comparison_page, policies_page, write_report
from edgeflow_opt.analysis.report.page import html_of, joined
from edgeflow_opt.errors import UsageError
from tests.analysis.helpers import policies, row, two_solvers
from tests.analysis.plots.test_pictures import planned
from tests.analysis.report.browser import screenshot, seen_in

#: What the report of :func:`small` looks like, much reduced. To make it anew after a change that was
#: looked at: delete the file and run the tests once.
REFERENCE = Path(__file__).with_name("reference.png")


@cache
def small() -> str:
    """Return the report of two solvers on three instances, with a failure."""
    rows = (*two_solvers().rows, row("i0", "<b>odd</b>", status="error", message="a & b"))
    return html_of(comparison_page(Comparison(rows=rows, settings={"time_limit_s": 10.0})))


@cache
def large() -> str:
    """Return the report of policies with the history of 500 jobs and 600 rows."""
    rows = policies().rows * 50
    history = History.of_schedule(*planned(500))
    return html_of(policies_page(PolicyComparison(rows=rows), histories=[history]))


def test_nothing_comes_from_elsewhere() -> None:
    """No address of another file or host stands where a browser would load it."""
    for html in (small(), large()):
        loaded = re.findall(r'(?:src|href|data|action)="(?!#|data:,)([^"]*)"', html)
        assert loaded == []
        assert re.findall(r"url\((?!#)[^)]*\)|@import", html) == []
        hosts = set(re.findall(r"https?://([^/\"\s]+)", html))
        assert hosts <= {"www.w3.org"}


def test_names_are_text() -> None:
    """Names and messages with signs of HTML come out as text."""
    assert "<b>odd</b>" not in small()
    assert "&lt;b&gt;odd&lt;/b&gt;" in small()
    assert "a &amp; b" in small()


def test_pictures_take_the_colours_of_the_page() -> None:
    """Text of pictures has the colour of the page, their ids are unique, and labels say what they show."""
    html = small()
    ids = re.findall(r'\bid="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', html)) <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", html)) <= set(ids)
    assert html.count('<svg role="img" aria-labelledby=') == 4
    assert "fill: currentColor" in html
    assert "#22262b" not in html.partition("</style>")[2]


def test_page_says_what_was_compared() -> None:
    """Cards, failures and settings are there; columns without values are not."""
    page = comparison_page(two_solvers(), title="T")
    assert page.title == "T"
    assert ("instances settled by a proof", "3 of 3") in page.cards
    assert ("time_limit_s", "10") in page.details
    assert [section.title for section in page.sections] == [
        "Solvers", "Over all runs", "Paired differences", "All runs",
    ]  # fmt: skip
    assert "Runs without a result" in small()
    both = joined([page, policies_page(policies())])
    assert len(both.sections) > len(page.sections)


def test_one_instance_and_one_solver() -> None:
    """The smallest comparison, even one that failed, has a report too."""
    assert "<table" in html_of(comparison_page(Comparison(rows=(row("i", "s", value=1.0),))))
    failed = row("i", "s", status="error", message="no", seconds=None)
    assert "no" in html_of(comparison_page(Comparison(rows=(failed,))))


def test_written_whole_or_not(tmp_path: Path) -> None:
    """A report is written to the file named; a folder that is not there is refused."""
    write_report(two_solvers(), tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(two_solvers(), tmp_path / "no" / "r.html")


@pytest.mark.parametrize(("name", "width"), [("small", 1280), ("large", 400)])
def test_in_a_browser(tmp_path: Path, name: str, width: int) -> None:
    """A browser loads the page without a complaint, nothing spills, tables sort and filter."""
    html = {"small": small, "large": large}[name]()
    sorted_by, words = ("seed", "quick") if name == "small" else ("met", "daily-no-such")
    seen = seen_in(tmp_path, html, width=width, sorted_by=sorted_by, words=words)
    assert seen["problems"] == []
    assert seen["resources"] == []
    assert seen["needed"] <= seen["width"]
    assert seen["spilt"] == []
    assert seen["twins"] == []
    # Where a table is wider than its frame, and only there, the page says so.
    assert all(wider == told for wider, told in seen["cut"])
    assert any(wider for wider, _ in seen["cut"]) == (name == "large")
    assert all(100 < drawn <= seen["width"] for drawn in seen["pictures"])
    rising = [float(text) for text in seen["rising"] if text != "-"]
    assert rising == sorted(rising)
    assert [float(text) for text in seen["falling"] if text != "-"] == rising[::-1]
    assert seen["sort"] == "descending"
    assert seen["theme"] == "dark"
    assert seen["ground"] == "rgb(21, 24, 28)"
    if name == "large":
        assert len(rising) == 600
        assert seen["left"] == 0


def _reduced(image: NDArray[np.float64], step: int = 40) -> NDArray[np.float64]:
    rows, columns = (side // step * step for side in image.shape[:2])
    cut = image[:rows, :columns].mean(axis=2)
    return cut.reshape(rows // step, step, columns // step, step).mean(axis=(1, 3))


def test_looks_as_it_did(tmp_path: Path) -> None:
    """The page looks as when it was last looked at, but for fonts; in the dark it is its negative."""
    light = screenshot(tmp_path, small())
    assert light.shape == (1800, 1280, 3)
    image = _reduced(light)
    if not REFERENCE.exists():
        imsave(REFERENCE, image, cmap="gray", vmin=0, vmax=1)
    reference = imread(REFERENCE)[:, :, 0]
    assert image.shape == reference.shape
    # Other fonts move words a little; another or a broken page has its ink elsewhere.
    assert np.corrcoef(image.ravel(), reference.ravel())[0, 1] > 0.8
    assert 0.5 < (1 - image).mean() / (1 - reference).mean() < 2.0
    dark = _reduced(screenshot(tmp_path, small(), theme="dark"))
    assert np.median(image) > 0.95
    assert np.median(dark) < 0.15
