"""What was asked before: the arrow keys of the prompt, kept in a file that only its owner reads."""

import os
from collections.abc import Mapping
from pathlib import Path

try:
    import readline
except ImportError:  # not everywhere; the prompt works without
    readline = None  # type: ignore[assignment]

_MOST = 1_000
_FILE = "ask-history"


class History:
    """The questions of this prompt and of earlier ones."""

    def __init__(self, path: Path) -> None:
        """Reads what is there; makes the file, and a directory for it, if there is none.

        Raises:
            OSError: the file cannot be made or read.

        """
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600))
        if readline is not None:
            readline.clear_history()
            readline.set_history_length(_MOST)
            readline.read_history_file(path)

    def keep(self) -> None:
        """Adds the line that was read last to the file, at once: other prompts may be open.

        Raises:
            OSError: the file cannot be written.

        """
        if readline is not None:
            readline.append_history_file(1, self._path)


def history_path(environment: Mapping[str, str]) -> Path:
    """Where the history lies, by the XDG base directory specification."""
    state = environment.get("XDG_STATE_HOME", "")
    # a relative path there is to be ignored
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "winnow" / _FILE
