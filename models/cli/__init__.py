"""`winnow models`: make the default bundle, export other people's models, train heads."""

import typer

from models.cli.accuracy import measure, record, verify
from models.cli.bundle import assemble, build, calibrate, ladder
from models.cli.exporting import export, random
from models.cli.heads import measure_heads, train_head
from models.cli.mining import mine, mine_clozes, mine_ranking
from models.cli.training import train_apart, train_encoder, train_ranking, train_reader

app = typer.Typer(no_args_is_help=True)
for command in (
    build,
    mine,
    train_encoder,
    train_reader,
    mine_ranking,
    train_ranking,
    mine_clozes,
    train_apart,
    assemble,
    calibrate,
    verify,
    measure,
    record,
    ladder,
    export,
    random,
    train_head,
    measure_heads,
):
    app.command()(command)
