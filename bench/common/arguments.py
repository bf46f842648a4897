"""The arguments that all benchmarks share, and the questions that they name."""

import argparse
from pathlib import Path

from winnow.cli.questions import read_questions


def parser(name: str, document: str | None, *, asks: bool = False) -> argparse.ArgumentParser:
    """A parser of `python -m bench.NAME` that knows `--json`.

    Args:
        name: of the benchmark, without `bench.`
        document: the docstring of its module, shown as help
        asks: whether it also requires `--index` and `--questions`

    """
    found = argparse.ArgumentParser(
        prog=f"python -m bench.{name}",
        description=document,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if asks:
        found.add_argument("--index", type=Path, required=True, help="directory of the index")
        found.add_argument(
            "--questions", type=Path, required=True, help="JSON lines with question (.gz, .zst)"
        )
    found.add_argument("--json", action="store_true", help="print JSON")
    return found


def questions(path: Path, limit: int | None = None) -> list[str]:
    """The questions of a file; with a limit, at most that many, evenly spread."""
    found = [each.question for each in read_questions(path)]
    return found if limit is None else found[:: max(len(found) // limit, 1)][:limit]
