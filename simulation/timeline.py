"""What has happened in a simulation, as lines of text, and which promises were broken."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from simulation.loop import SimulatedLoop


class Timeline:
    """The lines and the violations of one run."""

    def __init__(self, loop: SimulatedLoop, directory: Path) -> None:
        """`directory` has the files of this run."""
        self._loop, self._directory = loop, str(directory)
        self._digest = hashlib.blake2b(digest_size=16)
        self.lines: list[str] = []
        self.violations: list[str] = []

    @property
    def digest(self) -> str:
        """The hash of the lines: equal if two runs are equal."""
        return self._digest.hexdigest()

    def record(self, line: str) -> None:
        """Adds a line."""
        # without the path of this run, so that equal runs have equal timelines
        text = f"{self._loop.time():10.4f}  {line}".replace(self._directory, "")
        self._digest.update(text.encode())
        self.lines.append(text)

    def report(self, violation: str) -> None:
        """Adds a violation."""
        self.record(f"VIOLATION: {violation}")
        self.violations.append(violation)

    def report_all(self, violations: Iterable[str]) -> None:
        """Adds violations, each when it is found."""
        for violation in violations:
            self.report(violation)
