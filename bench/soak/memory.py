"""What memory nodes hold over time, and whether that is flat."""

import csv
import re
import statistics
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

_PARTS = 10
"""Parts of the judged time, of which each has to be flat: merges come and go within one."""
_LINE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """One node at one moment."""

    seconds: float
    """Since the load began."""
    node: int
    rss_mb: float
    anonymous_mb: float
    merges: int


def held(pid: int) -> tuple[float, float]:
    """Megabytes of a process in memory, and those of them that belong to no file (Linux)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    found = {name: int(kilobytes) / 1e3 for name, kilobytes in _LINE.findall(text)}
    return found["Rss"], found["Anonymous"]


def write_csv(path: Path, samples: Sequence[Sample]) -> None:
    """All samples, with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow([field.name for field in fields(Sample)])
        out.writerows(map(astuple, samples))


def growth(samples: Sequence[Sample], settled: float, end: float) -> float:
    """How much more anonymous memory one node held from `settled` to `end` seconds than it did at
    the beginning of that time, as a share: by the medians of tenths of it.

    Raises:
        ValueError: a tenth has no sample.

    """
    step = (end - settled) / _PARTS
    parts: list[list[float]] = [[] for _ in range(_PARTS)]
    for each in samples:
        if settled <= each.seconds <= end:
            parts[min(int((each.seconds - settled) / step), _PARTS - 1)].append(each.anonymous_mb)
    if not all(parts):
        raise ValueError(f"there are too few samples from {settled:g} s to {end:g} s")
    medians = [statistics.median(part) for part in parts]
    return max(medians) / medians[0] - 1
