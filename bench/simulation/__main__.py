"""Simulates clusters, and says how near that comes to real ones.

    python -m bench.simulation compare [--units FILE] [--seconds 15]
    python -m bench.simulation tails [--units FILE] [--plot FILE]
    python -m bench.simulation page

`compare` starts clusters of 1, 2, 4 and 8 shards on this machine, asks them in closed loops of one
client and of four, and simulates the same questions from the unit costs. `tails` simulates up to
1 000 shards. `page` measures the units first, does both, and writes docs/sizing.md, its picture and
the units that `winnow plan` reckons with: about seven minutes, in which nothing else should run.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from bench.simulation import compare, tables, tails
from bench.simulation.pages import replaced
from bench.simulation.plot import plot
from winnow.cli.units.measuring import Extent, measure
from winnow.packaged import checkout
from winnow.sizing.units import MEASURED, Units, read_units
from winnow.telemetry.progress import StageProgress

_SECONDS = 15.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=("compare", "tails", "page"))
    parser.add_argument("--units", type=Path, default=MEASURED, help="unit costs")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each measured load")
    parser.add_argument("--calls", type=int, default=tails.CALLS, help="simulated for each point")
    parser.add_argument("--plot", type=Path, help="picture of the tails")
    options = parser.parse_args()
    if options.what == "page":
        _page(options.seconds, options.calls)
    elif options.what == "compare":
        print(compare.HEADER, flush=True)
        compare.compare(read_units(options.units), options.seconds)
    else:
        _tails(read_units(options.units), options.calls, options.plot)


def _tails(units: Units, calls: int, picture: Path | None) -> list[tails.Point]:
    points = tails.run(units, calls=calls)
    print("\n".join(tables.tails_table(points)), flush=True)
    if picture is not None:
        plot(points, picture)
    return points


def _page(seconds: float, calls: int) -> None:
    """Each part is written as soon as it is known: what fails later takes nothing back."""
    docs = (checkout() or Path()) / "docs"
    with StageProgress() as progress:
        units = measure(Extent(), progress)
    MEASURED.write_text(units.model_dump_json(indent=2) + "\n", encoding="utf-8")
    _write(docs, "units", tables.units_table(units))
    _write(docs, "fronts", tables.fronts_table(units))
    _write(docs, "plan", tables.plan_text(units))
    print(compare.HEADER, flush=True)
    found = compare.compare(units, seconds)
    _write(docs, "compared", [compare.HEADER, *map(compare.row, found)])
    _write(docs, "tails", tables.tails_table(_tails(units, calls, docs / "tails.png")))


def _write(docs: Path, name: str, lines: Iterable[str]) -> None:
    page = docs / "sizing.md"
    page.write_text(replaced(page.read_text(encoding="utf-8"), name, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
