"""A real browser without a window: what it makes of a page, and how the page looks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

#: Names of the browser in distributions.
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

#: Put before everything else in the page: it remembers what goes wrong.
_BEFORE = """<script>
window.problems = [];
addEventListener("error", (e) => problems.push("error: " + e.message));
document.addEventListener("securitypolicyviolation",
  (e) => problems.push("loads " + e.blockedURI));
console.error = (...words) => problems.push("console: " + words.join(" "));
console.warn = console.error;
</script>"""

#: Put at the end: it tries the page out and leaves what it saw.
_AFTER = """<script>
addEventListener("load", () => {
  const root = document.documentElement;
  const seen = {problems, width: root.clientWidth, needed: root.scrollWidth, height: root.scrollHeight};
  seen.spilt = [...document.querySelectorAll("h1, h2, p, .cards div, figure, figcaption, header button")]
    .filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1).map((e) => e.outerHTML.slice(0, 80));
  seen.pictures = [...document.querySelectorAll("figure svg")].map((e) => e.getBoundingClientRect().width);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  seen.twins = ids.filter((id, at) => ids.indexOf(id) !== at);
  seen.resources = performance.getEntriesByType("resource").map((e) => e.name);
  seen.cut = [...document.querySelectorAll(".scroll")].map((e) => [e.scrollWidth > e.clientWidth + 1,
    e.nextElementSibling.getBoundingClientRect().height > 0]);
  const table = [...document.querySelectorAll("table")].pop();
  const column = (at) => [...table.tBodies[0].rows].map((row) => row.cells[at].textContent);
  const press = (at) => table.tHead.rows[0].cells[at].firstElementChild.click();
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const at = heads.indexOf(table.id && "SORTED");
  press(at); seen.rising = column(at);
  press(at); seen.falling = column(at);
  seen.sort = table.tHead.rows[0].cells[at].getAttribute("aria-sort");
  const filter = document.querySelector(`input[data-for="${table.id}"]`);
  if (filter) {
    filter.value = "FILTER"; filter.dispatchEvent(new Event("input"));
    seen.left = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
  }
  document.getElementById("theme").click();
  seen.theme = root.dataset.theme;
  seen.ground = getComputedStyle(document.body).backgroundColor;
  const out = document.createElement("pre");
  out.id = "seen"; out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>"""


def browser() -> str:
    """Return the path of a browser; skip the test where there is none."""
    for name in _NAMES:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"no browser is installed (looked for {', '.join(_NAMES)})")


def _run(folder: Path, page: Path, width: int, height: int, *extra: str) -> str:
    # The sandbox of the browser does not work for root, nor in most containers.
    done = subprocess.run(
        [
            browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-extensions", "--no-first-run", "--virtual-time-budget=3000",
            f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}", *extra,
            page.resolve().as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    return done.stdout


def seen_in(
    folder: Path, html: str, *, width: int = 1280, sorted_by: str, words: str
) -> dict[str, Any]:
    """Return what a browser sees in a page, having sorted and filtered its last table."""
    after = _AFTER.replace('table.id && "SORTED"', json.dumps(sorted_by)).replace("FILTER", words)
    page = folder / "tried.html"
    text = html.replace("<head>", "<head>" + _BEFORE, 1).replace("</body>", after + "</body>", 1)
    page.write_text(text, encoding="utf-8")
    dom = _run(folder, page, width, 900, "--dump-dom")
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    import html as entities

    seen: dict[str, Any] = json.loads(entities.unescape(found.group(1)))
    return seen


def screenshot(
    folder: Path, html: str, *, width: int = 1280, height: int = 1800, theme: str = "light"
) -> NDArray[np.float64]:
    """Return the picture of a page, rows x columns x (red, green, blue), 0 to 1."""
    from matplotlib.image import imread

    page, shot = folder / "shown.html", folder / "shot.png"
    page.write_text(html.replace("<html ", f'<html data-theme="{theme}" ', 1), encoding="utf-8")
    _run(folder, page, width, height, f"--screenshot={shot}")
    image: NDArray[np.float64] = np.asarray(imread(shot), dtype=float)[:, :, :3]
    return image
