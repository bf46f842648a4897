"""`winnow bench units`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from winnow.cli.result_files import reserved, writing
from winnow.cli.units.measuring import Extent, measure
from winnow.cli.units.report import tables
from winnow.sizing.units import Units
from winnow.telemetry.progress import StageProgress


def units(
    out: Annotated[
        Path | None, typer.Option(help="File to write them to (JSON), for `winnow plan --units`.")
    ] = None,
    passages: Annotated[
        list[int] | None,
        typer.Option(
            min=2_000,
            max=10_000_000,
            help="Size of a made-up shard to measure; may be repeated. Larger ones say more about "
            "a large index; a hundred thousand passages take a minute or two.",
            show_default="10000 40000",
        ),
    ] = None,
    questions: Annotated[
        int, typer.Option(min=20, max=2_000, help="Questions for each measurement of a front.")
    ] = 150,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what each part of a cluster costs on this machine: the units of `winnow plan`.

    Encoding, reading by length, finding by size, memory and disk of a passage, and what a front
    spends on each shard. Takes two to three minutes, in which nothing else should run. No server is
    needed.
    """
    with reserved(out):
        with StageProgress() as progress:
            found = measure(Extent(tuple(passages or ()), questions), progress)
        if out is not None:
            with writing(out):
                out.write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")
            typer.echo(f"written: {out}", err=True)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    elif out is None:
        _show(found)


def _show(found: Units) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for table in tables(found):
        console.print(table)
