"""Everything public is documented, and everything that the documentation names exists."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import tercet
import tercet.settings
from command_pages import commands, parameters, reference, section
from settings_pages import GROUPS, documentation, settable, settings, table
from tercet.cli.verbosity import SHARED
from tercet.settings.field_docs import field_docs
from tercet.settings.recipe import Recipe

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    if page.name not in ("CHANGELOG.md", "changelog.md")
)
API = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
DOCUMENTED = re.findall(r"\.\. auto(?:class|function|module):: ([\w.]+)", API)
MODULES = re.findall(r"\.\. (?:auto)?module:: ([\w.]+)", API)
RECIPE_TABLES = {"DatabaseOptions", "ServerConfig", "PretrainRecipe", "AugmentRecipe", "Recipe"}
"""Dataclasses that only hold the tables of a file, or the fields of others, which are listed one by one."""
COMMANDS = {path.removeprefix("tercet "): command for path, command in commands()}
TOOLS = {"recipes", "tasks"} | {path.split()[0] for path in COMMANDS if " " in path}
"""Commands that have commands."""
EVERY = {"--quiet", "-q", "--verbose", "-v", "--debug", "--help", "-h"}


def resolve(name: str) -> Any:
    """What a dotted name stands for."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


# the API reference


@pytest.mark.parametrize("name", [name for name in tercet.__all__ if name != "__version__"])
def test_every_public_name_is_in_the_reference(name: str) -> None:
    found = getattr(tercet, name)
    home = f"{getattr(found, '__module__', '')}.{name}"
    is_in_module = any(f"{module}.{name}" == home for module in MODULES)
    assert f"tercet.{name}" in {*DOCUMENTED, *MODULES} or is_in_module


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_name_of_the_reference_exists_and_says_what_it_is(name: str) -> None:
    assert (resolve(name).__doc__ or "").strip()


def imports() -> Iterator[tuple[str, str]]:
    """The names of tercet that pages and examples import, with the file."""
    for file in [*PAGES, *sorted((ROOT / "examples").glob("*.py"))]:
        text = file.read_text(encoding="utf-8")
        for module, names in re.findall(r"^from (tercet[\w.]*) import ([\w, ]+)", text, re.MULTILINE):
            for name in names.split(","):
                yield f"{module}.{name.strip()}", file.name


@pytest.mark.parametrize(("name", "file"), sorted(set(imports())))
def test_every_imported_name_exists(name: str, file: str) -> None:
    if name.startswith("tercet.integrations."):
        module = ROOT / "src" / Path(*name.split(".")[:-1]).with_suffix(".py")
        assert f"class {name.rpartition('.')[2]}" in module.read_text(encoding="utf-8")
    else:
        resolve(name)


def mentioned() -> set[str]:
    """The dotted names of tercet in the code of all pages."""
    found = set()
    for page in PAGES:
        for code in re.findall(r"`(tercet\.[\w.]+)", page.read_text(encoding="utf-8")):
            found.add(code.rstrip("."))
    return {name for name in found if not name.endswith((".json", ".cdx", ".service"))}


@pytest.mark.parametrize("name", sorted(mentioned()))
def test_every_mentioned_name_exists(name: str) -> None:
    if not name.startswith("tercet.integrations"):
        resolve(name)


# settings


def dataclasses_of_settings() -> dict[str, type[Any]]:
    modules = (
        import_module(f"tercet.settings.{each.name}") for each in iter_modules(tercet.settings.__path__)
    )
    values = (value for module in modules for value in vars(module).values())
    return {
        value.__name__: value
        for value in values
        if isinstance(value, type) and is_dataclass(value) and value.__module__.startswith("tercet.settings")
    }


LISTED = {kind.__name__: kind for group in GROUPS.values() for kind in group.values()}


def test_every_dataclass_of_settings_is_on_the_page() -> None:
    assert set(dataclasses_of_settings()) - RECIPE_TABLES == set(LISTED)


@pytest.mark.parametrize("kind", LISTED.values(), ids=LISTED)
def test_every_setting_says_what_it_means(kind: type[Any]) -> None:
    docs = documentation(kind)
    assert [each.name for each in settable(kind) if not docs.get(each.name)] == []
    shown = table(kind).lower()
    assert all(f"{each.name}`" in shown for each in settable(kind))


def test_every_group_of_settings_is_on_the_page() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [group for group in GROUPS if f"<!-- generated: settings {group} -->" not in page] == []
    assert all(settings(group) for group in GROUPS)


TITLED = [(title, kind) for group in GROUPS.values() for title, kind in group.items()]
TABLE_FIELDS = {
    name: {each.name for title, kind in TITLED for each in settable(kind) if f"[{name}]" in title}
    for name in re.findall(r"\[(\w+)\]", " ".join(title for title, _ in TITLED))
}


def dotted_settings() -> set[tuple[str, str]]:
    """The settings that pages name as ``table.setting``."""
    tables = "|".join(TABLE_FIELDS)
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found |= set(re.findall(rf"(?<![\w.:/-])({tables})\.([a-z]\w+)(?= ?=|`)", text))
    return found


@pytest.mark.parametrize(("table_name", "setting"), sorted(dotted_settings()))
def test_every_setting_that_a_page_names_exists(table_name: str, setting: str) -> None:
    assert setting in TABLE_FIELDS[table_name] | {"json", "jsonl", "md", "toml"}


def test_the_top_level_of_a_recipe_is_on_the_training_page() -> None:
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    names = {"about", "after", "teacher", "teacher_lexical_weight"}
    assert names <= set(field_docs(Recipe)) | {"about", "teacher"}
    assert [name for name in names if f"| `{name}` |" not in page] == []


# commands


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_says_what_it_does(path: str) -> None:
    arguments, options = parameters(COMMANDS[path])
    assert [each.name for each in [*arguments, *options] if not each.help] == []
    assert COMMANDS[path].help
    shown = section(f"tercet {path}", COMMANDS[path])
    assert [each.opts[0] for each in options if f"`{each.opts[0]}`" not in shown] == []


def test_every_command_is_in_the_reference() -> None:
    text = reference()
    assert [path for path in COMMANDS if f"### tercet {path}\n" not in text] == []
    assert "<!-- generated: commands -->" in (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


def shown_commands() -> Iterator[tuple[str, str]]:
    """The commands of tercet that pages show, in blocks and in the text, with the page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        found = re.findall(r"^(?:\$ )?(tercet [a-z].*)$", blocks, re.MULTILINE)
        found += re.findall(r"`(tercet [a-z][^`\n]*)`", text)
        for command in found:
            yield re.split(r" [#&|](?: |$)", command)[0].strip(), page.name


@pytest.mark.parametrize(("command", "page"), sorted(set(shown_commands())))
def test_every_shown_command_and_option_exists(command: str, page: str) -> None:
    _, *words = shlex.split(command)
    name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
    if name in TOOLS and len(words) == 1:
        return
    assert name in COMMANDS, f"{page}: there is no command {name}"
    known = {
        option for each in COMMANDS[name].params for option in [*each.opts, *each.secondary_opts]
    } | EVERY
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
    assert used <= known, f"{page}: {command}"


def test_options_of_every_command_are_described_once() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert all(f"`--{name}`" in page for name in SHARED)
