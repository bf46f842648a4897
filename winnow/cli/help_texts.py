"""Joins the short source lines of help texts, so that the terminal wraps them at its width."""

import inspect
from typing import Any

import typer


def with_wrapped_help(app: typer.Typer) -> Any:
    """Returns the command of `app`, with help texts that wrap at the width of the terminal."""
    command = typer.main.get_command(app)
    _unwrap_help(command)
    return command


def unwrap_paragraphs(text: str) -> str:
    """Joins the lines of each paragraph, unless some of its lines are indented, as in a list."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each if "\n " in each else each.replace("\n", " ") for each in paragraphs)


def _has_variable(option: Any) -> bool:
    return "(env WINNOW_" in (getattr(option, "help", None) or "")


def _unwrap_help(command: Any) -> None:
    if command.help:
        command.help = unwrap_paragraphs(command.help)
    if any(_has_variable(each) for each in command.params):
        # rich's columns would cut the long names of flags and variables
        command.rich_markup_mode = None
    for each in getattr(command, "commands", {}).values():
        _unwrap_help(each)
