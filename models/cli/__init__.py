"""`winnow models`: build the default bundle, export third-party models, train heads."""

import typer

from models.cli.accuracy import measure, record, verify
from models.cli.bundle import assemble, build, calibrate, ladder
from models.cli.exporting import export, random
from models.cli.heads import measure_heads, train_head
from models.cli.mining import mine, mine_clozes, mine_ranking
from models.cli.packed import pack, train_packed_reader, train_retrieval
from models.cli.training import train_encoder, train_ranking, train_reader, train_split_reader

app = typer.Typer(no_args_is_help=True)
for command in (
    build,
    mine,
    train_encoder,
    train_reader,
    mine_ranking,
    train_ranking,
    mine_clozes,
    train_split_reader,
    pack,
    train_retrieval,
    train_packed_reader,
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
    app.command("train-apart" if command is train_split_reader else None)(command)
