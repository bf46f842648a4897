"""The timeline of a simulation: what happened, when, and which promises were broken."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path


class Timeline:
    """Lines with their times, and violations."""

    def __init__(self, now: Callable[[], float], directory: Path) -> None:
        """Begins empty.

        Args:
            now: returns the simulated time, in seconds.
            directory: the directory of this run, which lines are stripped of. So equal runs have
                equal timelines.

        """
        self._now, self._directory = now, str(directory)
        self._digest = hashlib.blake2b(digest_size=16)
        self.lines: list[str] = []
        self.violations: list[str] = []

    @property
    def digest(self) -> str:
        """The hash of all lines: equal if two runs are equal."""
        return self._digest.hexdigest()

    def record(self, line: str) -> None:
        """Adds a line."""
        text = f"{self._now():10.4f}  {line}".replace(self._directory, "")
        self._digest.update(text.encode())
        self.lines.append(text)

    def report(self, violation: str) -> None:
        """Adds a violation."""
        self.record(f"VIOLATION: {violation}")
        self.violations.append(violation)

    def report_all(self, violations: Iterable[str]) -> None:
        """Adds violations."""
        for violation in violations:
            self.report(violation)
