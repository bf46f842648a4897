"""Tests of bundles with random weights."""

from pathlib import Path

import one_shard
import pytest
from conftest import PASSAGES
from typer.testing import CliRunner

from models.cli import app
from models.exporting.layout import read_checkpoint
from models.exporting.random_bundle import ReaderSize, save_random_reader
from models.exporting.reader import open_reader
from winnow.bundle import Bundle, load_bundle

pytestmark = pytest.mark.bundle


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    target = tmp_path_factory.mktemp("random") / "tiny"
    done = CliRunner().invoke(app, ["random", "--shape", "tiny", "--bundle", str(target)])
    assert done.exit_code == 0, (done.output, done.exception)
    return load_bundle(target)


def test_the_manifest_says_that_the_weights_are_random(tiny: Bundle) -> None:
    manifest = tiny.manifest
    assert manifest.name == "random-tiny"
    assert manifest.version == "random weights, for latency only"
    assert manifest.provenance["reader"]["weights"] == "random weights, for latency only"
    assert manifest.provenance["reader"]["shape"] == "2 layers of 128"
    assert manifest.accuracy == {}
    assert manifest.stopping == ()


def test_vectors_are_comparable_with_those_of_the_default_bundle(
    tiny: Bundle, bundle: Bundle
) -> None:
    assert tiny.manifest.encoding_fingerprint == bundle.manifest.encoding_fingerprint
    assert tiny.manifest.fingerprint != bundle.manifest.fingerprint


async def test_an_index_that_is_there_is_searched_and_read(
    tiny: Bundle, indexes: dict[int, Path]
) -> None:
    readings = await one_shard.search(tiny, indexes[1], "How many hearts does an octopus have?", 5)
    texts = {name: text for name, _, text in PASSAGES}
    assert len(readings) == 5
    for reading in readings:
        assert reading.answer == texts[reading.passage.id][reading.start : reading.end] != ""
    assert "octopus" in {reading.passage.id for reading in readings}, "the encoder is not random"


@pytest.mark.parametrize(
    ("shape", "layers", "width"),
    [("base", 12, 768), ("medium", 8, 512), ("small", 4, 512), ("mini", 4, 256), ("tiny", 2, 128)],
)
def test_shapes_are_those_of_the_miniatures(shape: str, layers: int, width: int) -> None:
    assert (ReaderSize(shape).layers, ReaderSize(shape).width) == (layers, width)


def test_the_same_seed_gives_the_same_weights(bundle: Bundle, tmp_path: Path) -> None:
    first, again, other = (
        weights(bundle.tokenizer, tmp_path / str(number), seed)
        for number, seed in enumerate((1, 1, 2))
    )
    assert first == again != other


def weights(tokenizer: Path, directory: Path, seed: int) -> list[float]:
    save_random_reader(ReaderSize.TINY, tokenizer, directory, seed)
    network = open_reader(read_checkpoint(directory))
    return [float(weight.detach().sum()) for weight in network.parameters()]
