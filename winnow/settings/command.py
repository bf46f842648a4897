"""Settings as a command: every field becomes an option with its help, default and variable."""

import inspect
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from winnow.settings.names import CONFIG_VARIABLE
from winnow.settings.source import Settings


def settings_command(kind: type[Settings], run: Callable[[Any], None]) -> Callable[..., None]:
    """A function for typer that settles `kind` from its options and hands it to `run`."""

    def command(**given: Any) -> None:
        config = given.pop("config")
        run(kind.load(given, config))

    parameters = [_parameter(name, field, kind) for name, field in kind.model_fields.items()]
    config = typer.Option(
        "--config",
        help=f"TOML file with these settings in a table '{kind.table}'. (env {CONFIG_VARIABLE})",
    )
    parameters.append(_keyword("config", Annotated[Path | None, config]))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = kind.__doc__
    return command


def _parameter(name: str, field: FieldInfo, kind: type[Settings]) -> inspect.Parameter:
    notes = f"env {kind.variable(name)}"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default not in (PydanticUndefined, None):
        notes += f", default {_shown(default)}"
    flag = "--" + name.replace("_", "-")
    spelled = f"{flag}/--no-{flag[2:]}" if field.annotation is bool else flag
    option = typer.Option(spelled, help=f"{field.description} ({notes})", show_default=False)
    return _keyword(name, Annotated[field.annotation | None, option])  # type: ignore[operator]


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _shown(default: Any) -> str:
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, list):
        return ",".join(map(str, default)) or "none"
    return str(default).lower() if isinstance(default, bool) else str(default) or "none"
