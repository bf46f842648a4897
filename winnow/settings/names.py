"""Names of settings, and errors about unknown names and wrong values. Pure."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.settings.errors import without_parser_details

if TYPE_CHECKING:  # every command imports this module
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

TABLES = ("front", "node", "encoder", "heads", "reader", "up")
"""Kinds of processes with settings. Each is a table of the TOML file and a prefix of variables."""
CONFIG_VARIABLE = "WINNOW_CONFIG"
"""Environment variable with the path of the settings file."""
NAME_VARIABLE = "WINNOW_PROCESS_NAME"
"""Environment variable with the name that a process has in its logs, such as `node 0`.

A command that starts several processes sets it for each of them.
"""

_PREFIX = "WINNOW_"
_COMMAND_VARIABLES = {
    "TLS",
    "CA",
    "CERT",
    "KEY",
    "TOKEN_FILE",
    "TOKEN",
    "ASSIGNMENT",
    "INDEXES",
    "TIMEOUT",
}
"""Names, without `WINNOW_`, of the variables of commands that are no processes with settings.

Commands that call a front node have those of `winnow.cli.access`.
"""
_OTHER_VARIABLES = {
    CONFIG_VARIABLE,
    NAME_VARIABLE,
    *(_PREFIX + name for name in _COMMAND_VARIABLES),
}
_SERVICE_LINK = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_MIN_SIMILARITY = 0.5
_RENAMED = {"cache_entries": "cache_mb"}
"""The new name of each renamed setting, by its old name."""


def variable(table: str, field: str) -> str:
    """The environment variable of a setting."""
    return f"{_PREFIX}{table}_{field}".upper()


def unknown_variables(
    table: str, fields: Iterable[str], environment: Mapping[str, str]
) -> list[str]:
    """An error for each unknown variable that begins with `WINNOW_`.

    Variables of other tables are skipped: their processes check them.
    """
    known = {variable(table, field): field for field in fields}
    errors = []
    for name, value in environment.items():
        if not name.startswith(_PREFIX) or name in _OTHER_VARIABLES or name in known:
            continue
        prefix, _, field = name.removeprefix(_PREFIX).lower().partition("_")
        if _is_service_link(name, value) or (field and prefix in TABLES and prefix != table):
            continue
        if field and prefix == table:
            match = _closest(field, known.values())
            hint = _hint(match and variable(table, match))
            errors.append(f"{name}: there is no such setting{hint}")
        else:
            match = _closest(prefix, {*TABLES, table})
            hint = _hint(match and variable(match, field or "…"))
            errors.append(f"{name}: no command has such a setting{hint}")
    return errors


def unknown_tables(table: str, content: Mapping[str, object]) -> list[str]:
    """An error for each unknown table of a file's content, and each key outside all tables."""
    known = {*TABLES, table}
    return [
        f"there is no table [{name}]{_hint(match and f'[{match}]')}"
        if isinstance(value, dict)
        else f"{name} is in no table: put it below a line [{table}]"
        for name, value in content.items()
        if name not in known
        for match in [_closest(name, known)]
    ]


def _closest(name: str, known: Iterable[str]) -> str:
    """The known name that replaced `name` or is most similar; empty if none is similar."""
    known = set(known)
    if _RENAMED.get(name) in known:
        return _RENAMED[name]
    matches = difflib.get_close_matches(name, sorted(known), n=1, cutoff=_MIN_SIMILARITY)
    return matches[0] if matches else ""


def _hint(suggestion: str) -> str:
    return f"; did you mean {suggestion}?" if suggestion else ""


def _is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes set a variable for a Service in the container's namespace."""
    return bool(_SERVICE_LINK.fullmatch(name)) or (name.endswith("_PORT") and "://" in value)


def describe_errors(
    table: str, fields: Iterable[str], error: "ValidationError", files: Mapping[str, Path]
) -> str:
    """Describes each error of pydantic: the setting's flag, its variable and the value.

    `files` maps the name of each setting that was read from a file to that file.
    """
    return "; ".join(
        f"{files[name]}: {line}" if (name := _setting_name(details)) in files else line
        for details in error.errors()
        for line in [_describe(table, fields, details)]
    )


def _setting_name(details: "ErrorDetails") -> str:
    return str(details["loc"][0]) if details["loc"] else ""


def _describe(table: str, fields: Iterable[str], details: "ErrorDetails") -> str:
    message = without_parser_details(details["msg"].removeprefix("Value error, "))
    if not details["loc"]:
        return message
    name = _setting_name(details)
    if details["type"] == "extra_forbidden":
        return f"{name}: there is no such setting in [{table}]{_hint(_closest(name, fields))}"
    setting = f"--{name.replace('_', '-')} (or {variable(table, name)})"
    if details["type"] == "missing":
        return f"{setting}: field required"
    if details["type"] == "value_error":  # Winnow's own message, which names the value
        return f"{setting}: {message}"
    return f"{setting}: {message.lower()}, not {details['input']!r}"
