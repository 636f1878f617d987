"""The reference is complete."""

from __future__ import annotations

import edgeflow_opt as ef
from tests.docs.pages import DOCS


def test_every_public_name_is_described() -> None:
    """Every name of `edgeflow_opt.__all__` has a description of its own, and stands in the index."""
    from api_pages import described, index

    paths = described()
    listed = index()
    for name in ef.__all__:
        if not name.startswith("__"):
            thing = getattr(ef, name)
            home = f"edgeflow_opt.{name}"
            assert home in paths or f"{thing.__module__}.{name}" in paths, name
            assert f"`{name} <" in listed, name


def test_every_page_of_the_reference_is_made() -> None:
    """Each page that the reference is divided into is a file, and each file is such a page."""
    from api_pages import PAGES

    files = {path.stem for path in (DOCS / "reference" / "api").glob("*.md")} - {"index"}
    assert files == set(PAGES)


def test_every_command_is_on_the_page() -> None:
    """The page of the command line has each command and each of its options."""
    from command_line import commands, page, parameters

    text = page()
    for words, command in commands():
        part = text.split(f"### edgeflow {words}\n")[1].split("\n### ")[0]
        for option in parameters(command, options=True):
            assert f"`{option.opts[0]}`" in part, f"{words} {option.opts[0]}"


def test_exit_codes_solvers_policies_and_schemas_are_those_of_the_code() -> None:
    """The generated lists have every entry of the registries, and every format has a table."""
    import registries
    import schemas

    from edgeflow_opt.policies import POLICIES
    from edgeflow_opt.solvers import SOLVERS

    assert all(f"| `{name}` |" in registries.solvers() for name in SOLVERS.names())
    assert all(f"| `{name}` |" in registries.policies() for name in POLICIES.names())
    codes = registries.exit_codes()
    assert all(f"| `{code}` |" in codes for code in (0, 1, 2, 3, 4, 5, 6, 130))
    assert "InstanceError" in codes
    table = schemas.page("edgeflow-epoch/1")
    assert all(f"| `{key}`" in table for key in ("must_meet", "restart_s", "capacity", "grid"))
