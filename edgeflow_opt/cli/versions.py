"""``edgeflow versions``: what is installed here, for reports of faults."""

from __future__ import annotations

from edgeflow_opt.cli.options import AsJson


def versions(as_json: AsJson = False) -> None:
    """Show the versions of the package and its libraries; paste this into reports of faults."""
    from edgeflow_opt.cli.console import facts, show, show_json
    from edgeflow_opt.versions import shown_versions, versions_document

    if as_json:
        show_json(versions_document())
    else:
        show(facts("Versions", shown_versions()))
