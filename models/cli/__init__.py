"""`winnow models`: build the default bundle, export third-party models, train heads."""

import typer

from models.cli.accuracy import measure, record, verify
from models.cli.bundle import assemble, build, calibrate, calibrate_texts, ladder
from models.cli.exporting import export, export_random
from models.cli.heads import measure_heads, train_head
from models.cli.mining import ask_documents, mine, mine_clozes, mine_ranking
from models.cli.packed import add_late_interaction, pack, train_packed_reader, train_retrieval
from models.cli.training import train_encoder, train_ranking, train_reader, train_split_reader

app = typer.Typer(no_args_is_help=True)
_NAMES = {train_split_reader: "train-apart", export_random: "random"}
"""Names of the commands that differ from their functions."""

for command in (
    build,
    mine,
    train_encoder,
    train_reader,
    mine_ranking,
    train_ranking,
    mine_clozes,
    train_split_reader,
    ask_documents,
    pack,
    train_retrieval,
    train_packed_reader,
    add_late_interaction,
    assemble,
    calibrate,
    calibrate_texts,
    verify,
    measure,
    record,
    ladder,
    export,
    export_random,
    train_head,
    measure_heads,
):
    app.command(_NAMES.get(command))(command)
