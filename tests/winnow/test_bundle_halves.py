"""Bundles whose reader is in two files, and those whose is not."""

import json
from pathlib import Path

import pytest
from whole_bundle import WHOLE

from winnow.bundle import read_manifest
from winnow.bundle.manifest import FILE, FORMAT_SPLIT, Manifest
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import to_checksummed_json

APART = {"lower": "lower.onnx", "width": 384, "passage_tokens": 256, "passage_position": 64}


def made(directory: Path, apart: dict[str, object], lower: str = "1" * 64) -> Path:
    content = json.loads((WHOLE / FILE).read_text())
    content |= {"format": FORMAT_SPLIT}
    content["reader"]["apart"] = apart
    content["files"]["lower.onnx"] = {"sha256": lower, "bytes": 1}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / FILE).write_text(to_checksummed_json(content))
    return directory


def test_a_whole_reader_has_no_lower_layers() -> None:
    manifest = read_manifest(WHOLE)
    assert manifest.lower_layers_fingerprint == ""
    assert manifest.reader.files == (manifest.reader.file,)


def test_halves_have_two_files_and_a_fingerprint_of_the_lower_one(tmp_path: Path) -> None:
    manifest = read_manifest(made(tmp_path / "a", APART))
    assert manifest.reader.files == ("lower.onnx", manifest.reader.file)
    assert len(manifest.lower_layers_fingerprint) == 16


def fingerprints(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.encoding_fingerprint, manifest.lower_layers_fingerprint, manifest.fingerprint


def test_other_lower_layers_are_another_reader_of_the_same_index(tmp_path: Path) -> None:
    one = fingerprints(read_manifest(made(tmp_path / "a", APART)))
    other = fingerprints(read_manifest(made(tmp_path / "b", APART, "2" * 64)))
    longer = fingerprints(read_manifest(made(tmp_path / "c", {**APART, "passage_tokens": 200})))
    assert one[0] == other[0] == longer[0]
    assert len({one[1], other[1], longer[1]}) == len({one[2], other[2], longer[2]}) == 3


def test_a_file_without_a_checksum_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match=r"names other\.onnx, but its `files` has no checksum"):
        read_manifest(made(tmp_path, {**APART, "lower": "other.onnx"}))
