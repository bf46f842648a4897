"""A prompt for questions with a history file. Ctrl-D or `exit` ends it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

try:
    import readline
except ImportError:  # some systems lack it; then there is no history
    readline = None  # type: ignore[assignment]

PROMPT = "ask> "
HINT = "ask a question; Ctrl-D or `exit` ends the prompt"
_EXIT_WORDS = {"exit", "quit"}
_MAX_HISTORY = 1_000
"""Maximum number of questions in the history file."""
_HISTORY_FILE = "ask-history"


def run_prompt(
    answer: Callable[[str], object],
    notify: Callable[[str], None],
    save: Callable[[], None] = lambda: None,
    read: Callable[[str], str] = input,
) -> None:
    """Reads and answers questions. Ctrl-C cancels the current line or question.

    Args:
        answer: answers a question, and reports its own errors.
        notify: prints a message that is not an answer.
        save: saves the last line to the history; called before each answer.
        read: reads a line after a prompt; raises EOFError at the end.

    """
    notify(HINT)
    while True:
        try:
            line = read(PROMPT).strip()
        except EOFError:
            notify("")
            return
        except KeyboardInterrupt:
            notify("")
            continue
        if line in _EXIT_WORDS:
            return
        if line:
            save()
            try:
                answer(line)
            except KeyboardInterrupt:
                notify("given up")


class History:
    """The questions that the arrow keys recall, in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        """Reads the file; creates it and its directory if it is missing.

        Raises OSError if the file cannot be created or read.
        """
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600))
        if readline is not None:
            readline.clear_history()
            readline.set_history_length(_MAX_HISTORY)
            readline.read_history_file(path)

    def save(self) -> None:
        """Appends the last line to the file now, which keeps the lines of other open prompts.

        Raises OSError if the file cannot be written.
        """
        if readline is not None:
            readline.append_history_file(1, self._path)


def history_path(environment: Mapping[str, str]) -> Path:
    """The path of the history file, by the XDG base directory specification."""
    state = environment.get("XDG_STATE_HOME", "")
    # the specification says to ignore a relative path
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "winnow" / _HISTORY_FILE
