"""Help texts that fit every terminal. Pure, but for the command that gets them."""

import inspect
from typing import Any

import typer


def with_flowing_help(app: typer.Typer) -> Any:
    """The command of `app`; its help is wrapped by the terminal, not where the source was."""
    command = typer.main.get_command(app)
    _flow(command)
    return command


def flowing(text: str) -> str:
    """Each paragraph as one line; one with indented lines is a list, and stays as it is."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each if "\n " in each else each.replace("\n", " ") for each in paragraphs)


def _names_variable(option: Any) -> bool:
    return "(env WINNOW_" in (getattr(option, "help", None) or "")


def _flow(command: Any) -> None:
    if command.help:
        command.help = flowing(command.help)
    if any(_names_variable(each) for each in command.params):
        # names of flags and variables are long: in columns they would be cut at 80
        command.rich_markup_mode = None
    for each in getattr(command, "commands", {}).values():
        _flow(each)
