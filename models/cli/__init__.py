"""`winnow models`: train, export, quantise, calibrate, verify and measure; export others'."""

import typer

from models.cli.accuracy import measure, record
from models.cli.build import build
from models.cli.bundle import assemble, calibrate
from models.cli.encoder import train_encoder
from models.cli.exporting import export, random
from models.cli.ladder import ladder
from models.cli.mining import mine
from models.cli.reader import train_reader
from models.cli.verification import verify

app = typer.Typer(no_args_is_help=True)
for command in (
    build,
    mine,
    train_encoder,
    train_reader,
    assemble,
    calibrate,
    verify,
    measure,
    record,
    ladder,
    export,
    random,
):
    app.command()(command)
