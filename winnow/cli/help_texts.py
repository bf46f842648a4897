"""Help texts that the terminal wraps."""

import inspect
from typing import Any

import typer


def with_flowing_help(app: typer.Typer) -> Any:
    """The command of `app`, with help that is wrapped by the terminal and not by the source."""
    command = typer.main.get_command(app)
    _flow(command)
    return command


def flowing(text: str) -> str:
    """Joins the lines of each paragraph. A paragraph with indented lines is a list, and stays."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each if "\n " in each else each.replace("\n", " ") for each in paragraphs)


def _names_variable(option: Any) -> bool:
    return "(env WINNOW_" in (getattr(option, "help", None) or "")


def _flow(command: Any) -> None:
    if command.help:
        command.help = flowing(command.help)
    if any(_names_variable(each) for each in command.params):
        # names of flags and variables are long: columns would cut them at 80
        command.rich_markup_mode = None
    for each in getattr(command, "commands", {}).values():
        _flow(each)
