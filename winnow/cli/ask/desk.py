"""Where questions come in and replies go out: one, many, or a conversation."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable

import typer
from rich.console import Console
from rich.text import Text

from winnow.cli.ask.history import History, history_path
from winnow.cli.ask.prompt import converse
from winnow.cli.ask.render import shown
from winnow.cli.ask.words import harmless
from winnow.cli.exits import complain
from winnow.client import Reply
from winnow.errors import WinnowError


class Desk:
    """Prints the replies to questions on stdout, and what goes wrong on stderr."""

    def __init__(self, ask: Callable[[str], Reply], as_json: bool, timings: bool = False) -> None:
        """`ask` raises WinnowError; `as_json` prints one line for each reply; `timings` shows where
        the time went.
        """
        self._ask, self._as_json, self._timings = ask, as_json, timings
        for stream in (sys.stdin, sys.stdout):
            if isinstance(stream, io.TextIOWrapper):  # whatever the terminal's alphabet is
                stream.reconfigure(errors="replace")

    def answer(self, question: str) -> bool:
        """Asks, and prints the reply; false if there was none."""
        try:
            reply = self._ask(question)
        except WinnowError as error:
            complain(error)
            return False
        if self._as_json:
            typer.echo(json.dumps(reply.as_dict()))
        else:
            console = Console(highlight=False)
            plain = not console.is_terminal
            console.print(shown(reply, console.width, plain, self._timings), soft_wrap=plain)
        return True

    def answer_lines(self, lines: Iterable[str]) -> bool:
        """Answers every line that is not blank, also after one that failed; false if one did.

        Raises:
            typer.BadParameter: there are none.

        """
        replied = [self._answer_one_of_many(line.strip()) for line in lines if line.strip()]
        if not replied:
            raise typer.BadParameter("standard input is empty", param_hint="QUESTION")
        return all(replied)

    def prompt(self) -> bool:
        """Answers until the user has no more questions."""
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        try:
            keep = History(history_path(os.environ)).keep
        except OSError as error:
            console.print(f"questions are not remembered: {error}", markup=False)
            converse(self.answer, console.print)
        else:
            converse(self.answer, console.print, keep)
        return True

    def _answer_one_of_many(self, question: str) -> bool:
        if self._as_json:
            return self.answer(question)
        console = Console(highlight=False, soft_wrap=True)
        console.print(Text(f"> {harmless(question)}\n", style="bold"))
        replied = self.answer(question)
        console.print()
        return replied
