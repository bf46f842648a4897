"""A prompt: one question after the other, until Ctrl-D or `exit`."""

from collections.abc import Callable

PROMPT = "ask> "
HINT = "ask a question; Ctrl-D or `exit` ends"
_ENDS = {"exit", "quit"}


def converse(
    answer: Callable[[str], object],
    say: Callable[[str], None],
    keep: Callable[[], None] = lambda: None,
    read: Callable[[str], str] = input,
) -> None:
    """Reads questions and has them answered. Ctrl-C gives up a line or a question, no more.

    Args:
        answer: answers a question, and says itself what goes wrong.
        say: tells the user something that is not an answer.
        keep: called after every line that is a question.
        read: reads a line; raises EOFError at the end.

    """
    say(HINT)
    while True:
        try:
            line = read(PROMPT).strip()
        except EOFError:
            say("")
            return
        except KeyboardInterrupt:
            say("")
            continue
        if line in _ENDS:
            return
        if line:
            keep()
            _answer(line, answer, say)


def _answer(line: str, answer: Callable[[str], object], say: Callable[[str], None]) -> None:
    try:
        answer(line)
    except KeyboardInterrupt:
        say("given up")
