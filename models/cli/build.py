"""`winnow models build`: every step of the whole bundle, in order."""

from pathlib import Path

from models.cli.bundle import assemble, calibrate
from models.cli.encoder import train_encoder
from models.cli.mining import mine
from models.cli.options import (
    DATA,
    EXTRA,
    MAX_LOSS,
    SEED,
    TEACHER,
    WEIGHTS,
    WORK,
    BundleOption,
    DataOption,
    ExtraOption,
    MaxLossOption,
    ScaleOption,
    SeedOption,
    WeightsOption,
    WorkOption,
)
from models.cli.reader import train_reader
from models.cli.verification import verify
from models.network.weights import minilm
from models.steps.graphs import export_encoder
from models.steps.mining import is_mined
from models.workspace import Workspace


def build(
    data: DataOption = DATA,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    bundle: BundleOption = TEACHER,
    extra: ExtraOption = EXTRA,
    scale: ScaleOption = 1.0,
    seed: SeedOption = SEED,
    max_loss: MaxLossOption = MAX_LOSS,
) -> None:
    """Make a bundle with a whole reader from data and pretrained weights.

    Runs mine, train-encoder, mine, train-reader, assemble, calibrate and verify, in this order.
    After an interruption, the same command continues. Takes about three hours on two cores with
    bfloat16.
    """
    with minilm(weights) as directory:
        _mine_if_needed(data, directory, work, extra)
        train_encoder(directory, work, scale=scale, seed=seed)
        _mine_if_needed(data, directory, work, extra)
        train_reader(directory, work, scale=scale, seed=seed)
        assemble(bundle, directory, work)
        calibrate(bundle, work, seed)
        verify(bundle, data, directory, work, max_loss, record_gold=True)


def _mine_if_needed(data: Path, weights: Path, work: Path, extra: int) -> None:
    place = Workspace(work).made()
    export_encoder(weights, place)
    if not is_mined(place):
        mine(data, weights, work, extra)
