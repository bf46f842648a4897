"""A prompt: one question after the other, until Ctrl-D or `exit`, with a history in a file."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

try:
    import readline
except ImportError:  # some systems lack it; the prompt works without
    readline = None  # type: ignore[assignment]

PROMPT = "ask> "
HINT = "ask a question; Ctrl-D or `exit` ends"
_ENDS = {"exit", "quit"}
_MOST = 1_000
_FILE = "ask-history"


def converse(
    answer: Callable[[str], object],
    say: Callable[[str], None],
    keep: Callable[[], None] = lambda: None,
    read: Callable[[str], str] = input,
) -> None:
    """Reads questions and has them answered. Ctrl-C gives up only a line or a question.

    Args:
        answer: answers a question, and reports its own errors.
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
            try:
                answer(line)
            except KeyboardInterrupt:
                say("given up")


class History:
    """The questions of this prompt and of earlier ones, for the arrow keys.

    Only its owner can read the file.
    """

    def __init__(self, path: Path) -> None:
        """Reads the file; makes it, and its directory, if it is missing.

        Raises OSError if the file cannot be made or read.
        """
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600))
        if readline is not None:
            readline.clear_history()
            readline.set_history_length(_MOST)
            readline.read_history_file(path)

    def keep(self) -> None:
        """Appends the last line to the file at once: other prompts may be open.

        Raises OSError if the file cannot be written.
        """
        if readline is not None:
            readline.append_history_file(1, self._path)


def history_path(environment: Mapping[str, str]) -> Path:
    """The file of the history, by the XDG base directory specification."""
    state = environment.get("XDG_STATE_HOME", "")
    # the specification says to ignore a relative path
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "winnow" / _FILE
