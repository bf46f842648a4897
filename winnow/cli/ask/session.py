"""Asks one question, many questions, or those of a conversation, and prints the replies."""

import os
from collections.abc import Callable, Iterable

import typer
from rich.text import Text

from winnow.cli.ask.prompt import History, converse, history_path
from winnow.cli.ask.render import shown
from winnow.cli.exits import complain
from winnow.cli.output import console, harmless, print_json, replace_foreign_characters
from winnow.client import Reply
from winnow.errors import WinnowError


class AskSession:
    """Prints the replies to questions on stdout, and errors on stderr."""

    def __init__(self, ask: Callable[[str], Reply], as_json: bool, timings: bool = False) -> None:
        """`ask` raises WinnowError; `as_json` prints each reply as one line; `timings` shows
        where the time went.
        """
        self._ask, self._as_json, self._timings = ask, as_json, timings
        replace_foreign_characters()

    def answer(self, question: str) -> bool:
        """Asks, and prints the reply; returns whether there was one."""
        try:
            reply = self._ask(question)
        except WinnowError as error:
            complain(error)
            return False
        if self._as_json:
            print_json(reply.as_dict(), indent=None)
        else:
            out = console()
            plain = not out.is_terminal
            out.print(shown(reply, out.width, plain, self._timings), soft_wrap=plain)
        return True

    def answer_lines(self, lines: Iterable[str]) -> bool:
        """Answers every line that is not blank, even after a failure; returns whether none failed.

        Raises typer.BadParameter if all lines are blank.
        """
        replied = [self._answer_line(line.strip()) for line in lines if line.strip()]
        if not replied:
            raise typer.BadParameter("standard input is empty", param_hint="QUESTION")
        return all(replied)

    def prompt(self) -> bool:
        """Answers until the user has no more questions."""
        out = console(stderr=True, soft_wrap=True)
        try:
            keep = History(history_path(os.environ)).keep
        except OSError as error:
            out.print(f"questions are not remembered: {error}", markup=False)
            converse(self.answer, out.print)
        else:
            converse(self.answer, out.print, keep)
        return True

    def _answer_line(self, question: str) -> bool:
        if self._as_json:
            return self.answer(question)
        out = console(soft_wrap=True)
        out.print(Text(f"> {harmless(question)}\n", style="bold"))
        replied = self.answer(question)
        out.print()
        return replied
