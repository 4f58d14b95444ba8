"""The reference of the command line, made from the typer application."""

import re
from collections.abc import Iterator
from inspect import signature
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from tercet.cli.main import app
from tercet.cli.verbosity import SHARED

EXAMPLE = re.compile(r"^Examples?:\s*", re.MULTILINE)


def commands() -> Iterator[tuple[str, Any]]:
    """The name of each command, such as ``tercet index build``, and the command."""
    return _commands(typer.main.get_command(app), "tercet")


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            if command.invoke_without_command:
                yield f"{path} {name}", command
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def anchor(path: str) -> str:
    """The anchor of a command on the page."""
    return path.replace(" ", "-")


def reference() -> str:
    """The Markdown of all commands: what each does, its usage and its options."""
    panels: dict[str, list[str]] = {}
    for path, command in commands():
        group = typer.main.get_command(app).commands[path.split()[1]]
        panels.setdefault(str(group.rich_help_panel), []).append(section(path, command))
    return "\n".join(f"## {panel}\n\n" + "\n".join(parts) for panel, parts in panels.items())


def section(path: str, command: Any) -> str:
    """The Markdown of one command."""
    text, *examples = EXAMPLE.split(str(command.help or ""))
    lines = [
        f"({anchor(path)})=",
        f"### {path}",
        "",
        _cell(text.strip()),
        "",
        "```console",
        f"$ {usage(path, command)}",
        "```",
        "",
    ]
    for example in examples:
        lines += ["```console", *(f"$ {line}" for line in _commands_of(example)), "```", ""]
    arguments, options = parameters(command)
    if arguments:
        lines += ["| argument | meaning |", "|---|---|", *map(_argument, arguments), ""]
    if options:
        lines += ["| option | default | meaning |", "|---|---|---|"]
        lines += [_option(command, option) for option in options] + [""]
    return "\n".join(lines)


def usage(path: str, command: Any) -> str:
    """How the command is called."""
    arguments, options = parameters(command)
    required = [f"{option.opts[0]} {_value(command, option)}" for option in options if option.required]
    names = [_name(each) if each.required else f"[{_name(each)}]" for each in arguments]
    return " ".join([path, *names, *required, "[OPTIONS]"])


def parameters(command: Any) -> tuple[list[Any], list[Any]]:
    """The arguments and the options of a command, without those that every command has."""
    shown = [each for each in command.params if each.name not in SHARED and not each.hidden]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    return arguments, [each for each in shown if each not in arguments]


def _commands_of(example: str) -> Iterator[str]:
    """The command lines of an example; a line break without a command before it continues the line."""
    return (line.strip() for line in example.strip().splitlines() if line.strip())


def _name(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name}..." if argument.nargs == -1 and not name.endswith("...") else name


def _argument(argument: Any) -> str:
    return f"| `{_name(argument)}` | {_cell(argument.help or '')} |"


def _option(command: Any, option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" `{_value(command, option)}`"
    return f"| {names}{value} | {_default(option)} | {_cell(option.help or '')}{_choices(command, option)} |"


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if isinstance(option.show_default, str):
        return _cell(option.show_default).replace("\\n", "`\\n`")
    if option.is_flag and option.secondary_opts:
        return f"`{option.opts[0] if option.default else option.secondary_opts[0]}`"
    if option.default in (None, False, "", (), []) or callable(option.default):
        return ""
    return f"`{option.default}`"


def _value(command: Any, option: Any) -> str:
    """What stands for the value of an option."""
    if option.metavar:
        return str(option.metavar)
    hint = _hint(command, option)
    names = {int: "NUMBER", float: "NUMBER"}
    return names.get(hint, "NAME" if get_origin(hint) is Literal else option.name.upper().replace("_", "-"))


def _choices(command: Any, option: Any) -> str:
    hint = _hint(command, option)
    if get_origin(hint) is not Literal:
        return ""
    choices = ", ".join(f"`{choice}`" for choice in get_args(hint))
    return f" Choices: {choices}."


def _hint(command: Any, option: Any) -> Any:
    """The type of one value of an option, from the function behind the command."""
    hint = signature(command.callback).parameters[option.name].annotation
    while get_origin(hint) is not None and get_origin(hint) is not Literal:
        inner = get_args(hint)
        if get_origin(hint) is Annotated:
            hint = inner[0]
        else:
            hint = next(each for each in inner if each is not NoneType)
    return hint


def _cell(text: str) -> str:
    escaped = text.replace("\\[", "[").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    return re.sub(r"(?<![\w`])(--?[a-z][\w-]*)", r"`\1`", re.sub(r"\n(?!\n)", " ", escaped))
