"""Asks one question, the lines of a file, or questions at a prompt, and prints the replies."""

import os
from collections.abc import Callable, Iterable

import typer
from rich.text import Text

from winnow.cli.ask.prompt import History, history_path, run_prompt
from winnow.cli.ask.render import render_reply
from winnow.cli.exits import print_error
from winnow.cli.output import console, print_json, printable, replace_unencodable_characters
from winnow.client import Reply
from winnow.errors import WinnowError

_MAX_ECHOED = 1_000
"""Maximum number of characters of a question that are printed. Servers refuse longer ones."""


class AskSession:
    """Prints the replies to questions on stdout, and errors on stderr."""

    def __init__(self, ask: Callable[[str], Reply], as_json: bool, timings: bool = False) -> None:
        """Takes the options of the output.

        Args:
            ask: asks a question; raises WinnowError.
            as_json: whether to print each reply as one line of JSON.
            timings: whether to show when each stage, call and read ran.

        """
        self._ask, self._as_json, self._timings = ask, as_json, timings
        replace_unencodable_characters()

    def answer(self, question: str) -> bool:
        """Asks a question, and prints the reply; returns whether there was a reply."""
        try:
            reply = self._ask(question)
        except WinnowError as error:
            print_error(error)
            return False
        if self._as_json:
            print_json(reply.as_dict(), indent=None)
        else:
            out = console()
            plain = not out.is_terminal
            out.print(render_reply(reply, out.width, plain, self._timings), soft_wrap=plain)
        return True

    def answer_each_line(self, lines: Iterable[str]) -> bool:
        """Answers each line that is not blank; returns whether every question got a reply.

        Raises typer.BadParameter if all lines are blank.
        """
        replied = [self._print_and_answer(line.strip()) for line in lines if line.strip()]
        if not replied:
            raise typer.BadParameter("standard input is empty", param_hint="QUESTION")
        return all(replied)

    def prompt(self) -> bool:
        """Answers questions at a prompt until the user ends it; returns True."""
        out = console(stderr=True, soft_wrap=True)
        try:
            save = History(history_path(os.environ)).save
        except OSError as error:
            out.print(f"the history of questions is not available: {error}", markup=False)
            run_prompt(self.answer, out.print)
        else:
            run_prompt(self.answer, out.print, save)
        return True

    def _print_and_answer(self, question: str) -> bool:
        """Prints a question, unless the output is JSON, and answers it; returns as `answer`."""
        if self._as_json:
            return self.answer(question)
        out = console(soft_wrap=True)
        out.print(Text(f"> {_echo(question)}\n", style="bold"))
        replied = self.answer(question)
        out.print()
        return replied


def _echo(question: str) -> str:
    shown = printable(question)
    if len(shown) <= _MAX_ECHOED:
        return shown
    return f"{shown[:_MAX_ECHOED]}… ({len(shown)} characters)"
