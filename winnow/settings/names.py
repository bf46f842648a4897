"""Names of settings, and errors that say which setting is wrong. Pure."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

TABLES = ("front", "node", "encoder", "heads", "up")
"""Tables of the file, and first words of variables: the processes that have settings."""
CONFIG_VARIABLE = "WINNOW_CONFIG"
"""Names the file."""
NAME_VARIABLE = "WINNOW_PROCESS_NAME"
"""A command that starts several processes sets it to the name of each: `front`, `node 0`."""

_PREFIX = "WINNOW_"
_OF_TOOLS = {"TLS", "CA", "CERT", "KEY", "TOKEN_FILE", "TOKEN"}
"""Variables of commands that call a front node; see `winnow.cli.access`."""
_OTHERS = {CONFIG_VARIABLE, NAME_VARIABLE, *(_PREFIX + name for name in _OF_TOOLS)}
_SERVICE_LINK = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_LEAST_LIKENESS = 0.5
_RENAMED = {"cache_entries": "cache_mb"}
"""New names of renamed settings."""


def variable(table: str, field: str) -> str:
    """The environment variable of a setting."""
    return f"{_PREFIX}{table}_{field}".upper()


def wrong_variables(table: str, fields: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """A line for each variable that was meant for Winnow and is not known.

    Variables of other tables are left to the processes that read them.
    """
    known = {variable(table, field): field for field in fields}
    lines = []
    for name, value in environment.items():
        if not name.startswith(_PREFIX) or name in _OTHERS or name in known:
            continue
        word, _, rest = name.removeprefix(_PREFIX).lower().partition("_")
        if _is_service_link(name, value) or (rest and word in TABLES and word != table):
            continue
        if rest and word == table:
            meant = closest(rest, known.values())
            lines.append(
                f"{name}: there is no such setting{_hint(meant and variable(table, meant))}"
            )
        else:
            meant = closest(word, {*TABLES, table})
            hint = meant and variable(meant, rest or "…")
            lines.append(f"{name}: no command has such a setting{_hint(hint)}")
    return lines


def wrong_tables(table: str, found: Mapping[str, object]) -> list[str]:
    """A line for each table of a file that no command reads, and each key outside of all tables."""
    known = {*TABLES, table}
    return [
        f"there is no table [{name}]{_hint(meant and f'[{meant}]')}"
        if isinstance(value, dict)
        else f"{name} stands in no table: put it below a line [{table}]"
        for name, value in found.items()
        if name not in known
        for meant in [closest(name, known)]
    ]


def wrong_key(key: str, table: str, fields: Iterable[str]) -> str:
    """A line for a key of a table that is no setting."""
    return f"{key}: there is no such setting in [{table}]{_hint(closest(key, fields))}"


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that replaced `name`, or is most like it; empty if none is like it."""
    known = set(known)
    if _RENAMED.get(name) in known:
        return _RENAMED[name]
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=_LEAST_LIKENESS)
    return found[0] if found else ""


def _hint(meant: str) -> str:
    return f"; did you mean {meant}?" if meant else ""


def _is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes set it: every container gets some for each service of its namespace."""
    return bool(_SERVICE_LINK.fullmatch(name)) or (name.endswith("_PORT") and "://" in value)


def explained(
    table: str, fields: Iterable[str], error: ValidationError, files: Mapping[str, Path]
) -> str:
    """Every fault of settings with its flag, its variable and the value.

    Args:
        table: the table of the settings.
        fields: the names of the settings.
        error: the faults that pydantic found.
        files: the file of each value that is from a file, by the name of the setting.

    """
    return "; ".join(
        f"{files[name]}: {line}" if (name := _name(fault)) in files else line
        for fault in error.errors()
        for line in [_line(table, fields, fault)]
    )


def _name(fault: ErrorDetails) -> str:
    return str(fault["loc"][0]) if fault["loc"] else ""


def _line(table: str, fields: Iterable[str], fault: ErrorDetails) -> str:
    said = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return said
    name = _name(fault)
    if fault["type"] == "extra_forbidden":
        return wrong_key(name, table, fields)
    place = f"--{name.replace('_', '-')} (or {variable(table, name)})"
    if fault["type"] == "missing":
        return f"{place}: field required"
    if fault["type"] == "value_error":  # our own words, which name the value
        return f"{place}: {said}"
    return f"{place}: {said.lower()}, not {fault['input']!r}"
