"""`winnow bench unit-costs`."""

from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.output import AsJson, console, print_json
from winnow.cli.units.measuring import MeasuringPlan, measure_unit_costs
from winnow.cli.units.report import tables
from winnow.files.result_files import convert_write_errors, reserve_files
from winnow.telemetry.progress import StageProgress


def units(
    out: Annotated[
        Path | None, typer.Option(help="JSON file to write, for `winnow plan --units`.")
    ] = None,
    passages: Annotated[
        list[int] | None,
        typer.Option(
            min=2_000,
            max=10_000_000,
            help="Number of passages of a synthetic shard to measure. May be repeated. Larger "
            "shards predict large indexes better; 100,000 passages take a minute or two.",
            show_default="10000 40000",
        ),
    ] = None,
    questions: Annotated[
        int,
        typer.Option(
            min=20, max=2_000, help="Number of questions for each measurement of a front node."
        ),
    ] = 150,
    shards_per_node: Annotated[
        int,
        typer.Option(
            min=1,
            max=128,
            help="Number of shards on each content node when front nodes are measured.",
        ),
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Measure the unit costs of this machine for `winnow plan`.

    Measures encoding, reading by length, retrieving by size, memory and disk of a passage, the cost
    of a shard for a front node, and the costs of processes that serve. Measuring takes four to five
    minutes. The machine should have no other load. No server is needed.
    """
    with reserve_files(out):
        with StageProgress() as progress:
            plan = MeasuringPlan(tuple(passages or ()), questions, shards_per_node=shards_per_node)
            measured = measure_unit_costs(plan, progress)
        if out is not None:
            with convert_write_errors(out):
                out.write_text(measured.model_dump_json(indent=2) + "\n", encoding="utf-8")
            typer.echo(f"written: {out}", err=True)
    if as_json:
        print_json(measured)
    elif out is None:
        for table in tables(measured):
            console(soft_wrap=True).print(table)
