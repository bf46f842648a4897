"""Where settings come from: flags, then the environment, then a TOML file, then defaults."""

import os
import tomllib
from collections.abc import Collection, Mapping
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

from winnow.quoting import quoted
from winnow.settings.errors import SettingsError
from winnow.settings.names import (
    CONFIG_VARIABLE,
    describe_errors,
    unknown_tables,
    unknown_variables,
    variable,
)


class Settings(BaseModel):
    """Base class of all settings. A field's description is its help text."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    table: ClassVar[str]
    """Name of the table in the TOML file, and prefix of the environment variables."""
    _file: Path | None = PrivateAttr(default=None)

    @field_validator("*", mode="before")
    @classmethod
    def _check_number(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and annotation in (int, float):  # Python treats it as 0 or 1
            raise ValueError(f"{str(value).lower()} is not a number")
        return value

    @field_validator("*")
    @classmethod
    def _check_path(cls, value: Any) -> Any:
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path) and "\0" in str(path):
                raise ValueError(f"{quoted(str(path))} is not a path: it contains a null character")
        return value

    @property
    def file(self) -> Path | None:
        """Path of the TOML file that was read; None if there was none."""
        return self._file

    @classmethod
    def variable(cls, field: str) -> str:
        """Name of the environment variable of a field."""
        return variable(cls.table, field)

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any],
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        ignored: Collection[str] = (),
    ) -> Self:
        """Reads each field from the flags, else from its variable, else from the `config` file.

        `ignored`: fields that only flags set. Their variables and values in the file are ignored.

        Raises SettingsError if a value is wrong or missing, a name is unknown, or the file cannot
        be read.
        """
        environment = os.environ if environment is None else environment
        if errors := unknown_variables(cls.table, cls.model_fields, environment):
            raise SettingsError("; ".join(errors))
        if config is None and environment.get(CONFIG_VARIABLE):
            config = Path(environment[CONFIG_VARIABLE])
        from_file = _read_table(config, cls.table) if config is not None else {}
        from_file = {name: value for name, value in from_file.items() if name not in ignored}
        overrides = {
            name: _split(environment[cls.variable(name)], field.annotation)
            for name, field in cls.model_fields.items()
            if cls.variable(name) in environment and name not in ignored
        }
        overrides |= {name: value for name, value in flags.items() if value not in (None, [], ())}
        try:
            settings = cls.model_validate({**from_file, **overrides})
        except ValidationError as error:
            files = {name: config for name in from_file if config and name not in overrides}
            message = describe_errors(cls.table, cls.model_fields, error, files)
            raise SettingsError(message) from error
        settings._file = config  # noqa: SLF001 (same class)
        return settings


def configured_value(
    table: str, field: str, file: Path | None, environment: Mapping[str, str] | None = None
) -> Any:
    """Reads one setting of any kind of process from its variable, else from the TOML file.

    The value is not converted or checked. Returns None if neither has the setting. Raises
    SettingsError if the file cannot be read.
    """
    environment = os.environ if environment is None else environment
    if file is None and environment.get(CONFIG_VARIABLE):
        file = Path(environment[CONFIG_VARIABLE])
    value = environment.get(variable(table, field))
    return _read_table(file, table).get(field) if value is None and file is not None else value


def _split(value: str, annotation: Any) -> Any:
    """Splits a variable at commas if the setting is a list."""
    if annotation in (list[str], list[Path]):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _read_table(path: Path, table: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}") from error
    except ValueError as error:  # invalid TOML, or a path with a null character
        raise SettingsError(f"cannot read the settings file {path}: {error}") from error
    if errors := unknown_tables(table, content):
        raise SettingsError(f"{path}: {'; '.join(errors)}")
    values = content.get(table, {})
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: [{table}] must be a table")
    return dict(values)
