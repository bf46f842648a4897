"""Where settings come from: flags, then the environment, then a TOML file, then defaults."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from winnow.errors import WinnowError
from winnow.quoting import quoted
from winnow.settings.names import (
    CONFIG_VARIABLE,
    explained,
    variable,
    wrong_tables,
    wrong_variables,
)


class SettingsError(WinnowError):
    """A setting has a value it cannot have, or an unknown name."""


class Settings(BaseModel):
    """Base of all settings. A field's description is its help text."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    table: ClassVar[str]
    """The table of the TOML file, and part of the variables' names."""
    _file: Path | None = PrivateAttr(default=None)

    @field_validator("*", mode="before")
    @classmethod
    def _check_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in (int, float):  # to Python it is 0 or 1
            raise ValueError(f"{str(value).lower()} is no number")
        return value

    @field_validator("*")
    @classmethod
    def _check_path(cls, value: Any) -> Any:
        if isinstance(value, Path) and "\0" in str(value):
            raise ValueError(f"{quoted(str(value))} is no path: it has a null character in it")
        return value

    @property
    def file(self) -> Path | None:
        """The TOML file that was read, if any."""
        return self._file

    @classmethod
    def variable(cls, field: str) -> str:
        """The environment variable of a field."""
        return variable(cls.table, field)

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any],
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Settles every field.

        Raises SettingsError if a value is wrong or missing, a name is unknown, or the file cannot
        be read.
        """
        environment = os.environ if environment is None else environment
        if wrong := wrong_variables(cls.table, cls.model_fields, environment):
            raise SettingsError("; ".join(wrong))
        if config is None and environment.get(CONFIG_VARIABLE):
            config = Path(environment[CONFIG_VARIABLE])
        in_file = _table(config, cls.table) if config is not None else {}
        said = {
            name: _split(environment[cls.variable(name)], field.annotation)
            for name, field in cls.model_fields.items()
            if cls.variable(name) in environment
        }
        said |= {name: value for name, value in flags.items() if value not in (None, [], ())}
        try:
            settings = cls.model_validate({**in_file, **said})
        except ValidationError as error:
            files = {name: config for name in in_file if config is not None and name not in said}
            raise SettingsError(explained(cls.table, cls.model_fields, error, files)) from error
        settings._file = config  # noqa: SLF001 (its own)
        return settings


def given(
    table: str, field: str, file: Path | None, environment: Mapping[str, str] | None = None
) -> Any:
    """A setting of a process of another kind, unless a flag says otherwise.

    Returns the variable, else the value in the file, unconverted; None if it is in neither. Raises
    SettingsError if the file cannot be read.
    """
    environment = os.environ if environment is None else environment
    if file is None and environment.get(CONFIG_VARIABLE):
        file = Path(environment[CONFIG_VARIABLE])
    found = environment.get(variable(table, field))
    return _table(file, table).get(field) if found is None and file is not None else found


def _split(value: str, annotation: Any) -> Any:
    """A list in a variable is separated by commas."""
    if annotation == list[str]:
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _table(path: Path, table: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}") from error
    except ValueError as error:  # also a path that no system can have
        raise SettingsError(f"cannot read the settings file {path}: {error}") from error
    if wrong := wrong_tables(table, content):
        raise SettingsError(f"{path}: {'; '.join(wrong)}")
    found = content.get(table, {})
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: [{table}] must be a table")
    return dict(found)
