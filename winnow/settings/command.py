"""Builds a command from a settings class: each field becomes an option with help and default."""

import importlib
import inspect
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from winnow import signals
from winnow.settings.names import CONFIG_VARIABLE
from winnow.settings.source import Settings


def settings_command(settings: type[Settings], run: Callable[[Any], None]) -> Callable[..., None]:
    """Returns a typer command that fills `settings` from its options, and passes them to `run`."""

    def command(**flags: Any) -> None:
        config = flags.pop("config")
        run(settings.load(flags, config))

    fields = settings.model_fields.items()
    parameters = [_parameter(name, field, settings.variable(name)) for name, field in fields]
    config = typer.Option(
        "--config",
        help=f"TOML file with these settings in a table '{settings.table}'. "
        f"(env {CONFIG_VARIABLE})",
    )
    parameters.append(_keyword("config", Annotated[Path | None, config]))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = settings.__doc__
    return command


def service_command(settings: type[Settings], module: str) -> Callable[..., None]:
    """Returns a typer command that passes `settings` to the function `run` of a module.

    The module is imported only to run it, so that `--help` is quick.
    """

    def run(filled: Settings) -> None:
        with signals.importing():
            service = importlib.import_module(module)
        service.run(filled)

    return settings_command(settings, run)


def _parameter(name: str, field: FieldInfo, variable: str) -> inspect.Parameter:
    notes = f"env {variable}"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default not in (PydanticUndefined, None):
        notes += f", default {_format_default(default)}"
    flag = "--" + name.replace("_", "-")
    flags = f"{flag}/--no-{flag[2:]}" if field.annotation is bool else flag
    option = typer.Option(flags, help=f"{field.description} ({notes})", show_default=False)
    return _keyword(name, Annotated[field.annotation | None, option])  # type: ignore[operator]


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotation)


def _format_default(default: Any) -> str:
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, list):
        return ",".join(map(str, default)) or "none"
    return str(default).lower() if isinstance(default, bool) else str(default) or "none"
