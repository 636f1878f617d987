"""Every command with its arguments and options, from the application itself."""

from __future__ import annotations

from typing import Any

from markup import code, plain, table


def commands() -> list[tuple[str, Any]]:
    """Return all commands as (words after ``edgeflow``, command), in the order of ``--help``."""
    import typer

    from edgeflow_opt.cli.application import app

    return _below(typer.main.get_command(app), "")


def _below(group: Any, words: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        path = f"{words} {name}".strip()
        found.append((path, command))
        if hasattr(command, "commands"):
            found += _below(command, path)
    return found


def parameters(command: Any, *, options: bool) -> list[Any]:
    """Return the options or the arguments of a command that are not hidden."""
    return [
        parameter
        for parameter in command.params
        if (parameter.param_type_name == "option") is options
        and not getattr(parameter, "hidden", False)
    ]


def page() -> str:
    """Return the page of all commands."""
    import typer

    from edgeflow_opt.cli.application import app

    root = typer.main.get_command(app)
    text = f"```console\n$ edgeflow [OPTIONS] COMMAND [ARGS]...\n```\n\n{_options(root)}\n"
    panel = None
    for words, command in commands():
        if command.rich_help_panel != panel:
            panel = command.rich_help_panel
            text += f"\n## {panel}\n"
        text += f"\n### edgeflow {words}\n\n{_body(words, command)}"
    return text


def _body(words: str, command: Any) -> str:
    arguments = parameters(command, options=False)
    usage = " ".join(["$ edgeflow", words, "[OPTIONS]", *map(_usage, arguments)])
    text = f"{plain(command.help or '')}\n\n```console\n{usage}\n```\n\n"
    if arguments:
        rows = [(code(_metavar(argument)), _help(argument)) for argument in arguments]
        text += table(("argument", "meaning"), rows) + "\n"
    return text + _options(command)


def _options(command: Any) -> str:
    rows = []
    for option in parameters(command, options=True):
        names = ", ".join(map(code, option.opts))
        if option.secondary_opts:
            names += " / " + ", ".join(map(code, option.secondary_opts))
        value = "" if option.is_flag else code(_metavar(option))
        rows.append((f"{names} {value}", _help(option)))
    return table(("option", "meaning"), rows) if rows else ""


def _usage(argument: Any) -> str:
    name = _metavar(argument) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper().replace("_", "-")).strip("{}")


def _help(parameter: Any) -> str:
    text = plain(" ".join((parameter.help or "").split()))
    notes = []
    if parameter.required and parameter.param_type_name == "option":
        notes.append("required")
    default = parameter.default
    if getattr(parameter, "show_default", False) and _says_something(default, parameter):
        notes.append(f"default: {code(str(default))}")
    if getattr(parameter, "envvar", None):
        notes.append(f"environment: {code(str(parameter.envvar))}")
    if getattr(parameter, "multiple", False):
        notes.append("repeatable")
    return text + (f" ({'; '.join(notes)})" if notes else "")


def _says_something(default: Any, parameter: Any) -> bool:
    if default is None or callable(default) or default in ("", [], ()):
        return False
    return not (getattr(parameter, "is_flag", False) and not parameter.secondary_opts)
