"""Pictures of schedules, drawn when pages are built, inline and in the colours of the page.

Drawn is a schedule that was found before, since solvers are not run here; the checker holds it
against the instance, so that it cannot be of another one.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "_schedules"


def gantt(name: str) -> str:
    """Return the Gantt chart of a schedule of the built-in workload, a file in ``_schedules``."""
    import edgeflow_opt as ef
    from edgeflow_opt.analysis.plots import plot_gantt
    from edgeflow_opt.analysis.report.page import inline_svg
    from edgeflow_opt.workloads import demo_problem

    problem = demo_problem()
    schedule = ef.read_schedule(FOLDER / f"{name}.json")
    report = ef.check(problem, schedule)
    if not report.valid:
        raise ValueError(
            f"{name}.json is no schedule of the built-in workload: {report.violations[0]}"
        )
    label = "A row is a GPU or an edge server, a colour is a job; hatched are jobs that miss their deadline."
    svg = inline_svg(plot_gantt(problem, schedule, title=""), f"gantt-{name}", label)
    lines = "\n".join(line for line in svg.splitlines() if line.strip())
    return f'<figure class="picture">\n{lines}\n<figcaption>{label}</figcaption>\n</figure>\n'
