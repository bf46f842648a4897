"""Where settings come from: flags, then the environment, then a TOML file, then defaults."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from winnow.errors import WinnowError

CONFIG_VARIABLE = "WINNOW_CONFIG"


class SettingsError(WinnowError):
    """A setting has a value it cannot have, or a name nobody knows."""


class Settings(BaseModel):
    """Base of all settings. A field's description is its help text."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    table: ClassVar[str]
    """The table of the TOML file, and part of the variables' names."""

    @classmethod
    def variable(cls, field: str) -> str:
        """The environment variable of a field."""
        return f"WINNOW_{cls.table}_{field}".upper()

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any],
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Settles every field.

        Raises:
            SettingsError: a value is wrong or missing, or the file cannot be read.

        """
        environment = os.environ if environment is None else environment
        if config is None and CONFIG_VARIABLE in environment:
            config = Path(environment[CONFIG_VARIABLE])
        values = _table(config, cls.table) if config is not None else {}
        values |= {
            name: _split(environment[cls.variable(name)], field.annotation)
            for name, field in cls.model_fields.items()
            if cls.variable(name) in environment
        }
        values |= {name: value for name, value in flags.items() if value not in (None, [], ())}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError(_explain(cls, error)) from error


def _split(value: str, annotation: Any) -> Any:
    """A list in a variable is separated by commas."""
    if annotation == list[str]:
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _table(path: Path, table: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {path}: {error}") from error
    found = content.get(table, {})
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: [{table}] must be a table")
    return dict(found)


def _explain(cls: type[Settings], error: ValidationError) -> str:
    lines = []
    for fault in error.errors():
        name = str(fault["loc"][0]) if fault["loc"] else "settings"
        if fault["type"] == "extra_forbidden":
            lines.append(f"{name}: there is no such setting in [{cls.table}]")
            continue
        flag = "--" + name.replace("_", "-")
        given = "" if fault["type"] == "missing" else f", not {fault['input']!r}"
        lines.append(f"{flag} (or {cls.variable(name)}): {fault['msg'].lower()}{given}")
    return "; ".join(lines)
