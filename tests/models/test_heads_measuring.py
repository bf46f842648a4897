"""Tests of heads of public data sets."""

import json
from pathlib import Path

import pytest
import zstandard
from heads_made import texts, tiny_bundle
from typer.testing import CliRunner

from models.cli import app
from winnow.bundle import Bundle
from winnow.heads.artefact import load_head

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture(scope="module")
def bundle(places: Path) -> Bundle:
    return tiny_bundle(places, "tiny")


def packed(path: Path) -> None:
    target = path.with_name(path.name + ".zst")
    target.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))


def measure(bundle: Bundle, tmp_path: Path, *arguments: object) -> dict[str, dict[str, float]]:
    command = ["measure-heads", "--data", tmp_path, "--work", tmp_path / "work", "--json"]
    command += ["--bundle", bundle.directory, *arguments]
    done = CliRunner().invoke(app, [str(each) for each in command])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def test_a_head_for_a_data_set_is_trained_and_written(bundle: Bundle, tmp_path: Path) -> None:
    for part, seed in (("train", 0), ("test", 1)):
        packed(texts(tmp_path / f"banking77-{part}.jsonl", seed=seed))
    found = measure(bundle, tmp_path, "--only", "banking", "--out", tmp_path / "heads")
    assert set(found) == {"banking"}
    assert found["banking"]["accuracy"] > 50
    manifest = load_head(tmp_path / "heads" / "banking").manifest
    assert manifest.trained_on is not None
    assert manifest.trained_on.data == "banking77-train.jsonl.zst"
    assert "CC BY 4.0" in manifest.licences["training data"]


def test_an_unknown_head_is_refused(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["measure-heads", "--only", "nothing"])
    assert refused.exit_code == 1
    assert "unknown head nothing: choose from intent, banking" in str(refused.exception)
