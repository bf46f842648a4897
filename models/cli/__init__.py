"""`winnow models`: make the default bundle, export other people's models, train heads."""

import typer

from models.cli.accuracy import measure, record
from models.cli.apart import train_apart
from models.cli.build import build
from models.cli.bundle import assemble, calibrate
from models.cli.clozes import mine_clozes
from models.cli.encoder import train_encoder
from models.cli.exporting import export, random
from models.cli.heads import train_head
from models.cli.heads_measuring import measure_heads
from models.cli.ladder import ladder
from models.cli.mining import mine
from models.cli.ranking import mine_ranking, train_ranking
from models.cli.reader import train_reader
from models.cli.verification import verify

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
