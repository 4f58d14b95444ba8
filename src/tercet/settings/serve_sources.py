"""The settings of the server from a TOML file, the environment and the command line."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tercet.files.structured import read_toml
from tercet.settings.engine import EngineConfig
from tercet.settings.serve import ServeConfig, ServeLimits, ServerConfig
from tercet.settings.tables import check_keys, from_table, set_value

TABLES: dict[str, type[Any]] = {"serve": ServeConfig, "engine": EngineConfig, "limits": ServeLimits}
"""The tables of the file, and the first part of the names of environment variables: TERCET_LIMITS_MAX_K."""


def server_config(
    file: Path | None, *, options: Mapping[str, Any], assignments: Iterable[str] = ()
) -> ServerConfig:
    """The settings: those of the file, replaced by the environment's, and these by the command line's.

    Args:
        options: settings of the table ``serve`` that the command line gives.
        assignments: others, such as ``limits.max_texts=100``.
    """
    where = "the settings of the server" if file is None else str(file)
    tables: dict[str, Any] = {} if file is None else dict(read_toml(file))
    check_keys(tables, TABLES, where)
    for name, kind in TABLES.items():
        for each in fields(kind):
            value = os.environ.get(f"TERCET_{name}_{each.name}".upper())
            if value:
                set_value(tables, f"{name}.{each.name}={value}")
    for assignment in assignments:
        set_value(tables, assignment)
    check_keys(tables, TABLES, where)
    tables.setdefault("serve", {}).update(options)
    return ServerConfig(
        **{
            name: from_table(kind, tables.get(name, {}), f"{where}, [{name}]")
            for name, kind in TABLES.items()
        }
    )
