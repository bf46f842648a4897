"""Summarises skipped tests: the last lines of `make test` tell what to install.

Knows pytest's reports and the reasons in them (`needs.py`). Prints a line for each reason.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def reasons(reports: Iterable[Any]) -> Counter[str]:
    """Counts skipped tests by reason; a file that cannot be imported counts as one test."""
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)


def lines(counted: Mapping[str, int]) -> list[str]:
    """Returns a line for each reason, the most frequent first."""
    ordered = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return [f"{number:>5}  {reason}" for reason, number in ordered]


def tell(terminal: Any, file: Path | None) -> None:
    """Writes the summary to the terminal, and to `file` if given."""
    counted = reasons(terminal.stats.get("skipped", ()))
    told = lines(counted)
    if told:
        terminal.section(f"{counted.total()} skipped, and what they need", sep="-")
        terminal.write_line("\n".join(told))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in told), encoding="utf-8")
