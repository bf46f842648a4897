"""However bad a `head.json` is, it is a head that works or an ArtefactError."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from altered_json import mutations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_heads import WIDTH, small_head

from winnow.errors import ArtefactError, UnavailableError
from winnow.files.checksummed_json import to_checksummed_json
from winnow.heads.artefact import load_head
from winnow.heads.head import open_head
from winnow.heads.manifest import FILE, MODEL, read_head_manifest
from winnow.heads.writing import write_head

anything: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([
        None, True, False, 0, -1, 1, 2, 3, 2**31, 2**53, 2**64, 10**40, 1.5, 3.0, -0.0, 1e308, 1e-320,
        float("nan"), float("inf"), "", "3", ".", "..", "a/b", "\0", "\ud800", "é", "x" * 5_000, "O",
        "B-", "I-", "B-person", "I-person", "sequence", "token", "0" * 64, [], [[]], {}, {"": {}},
        ["O"], ["a", "a"], ["a", ""], ["\ud800", "b", "c"], ["O", "I-x", "B-y"], ["O", "B-", "I-"],
        [1, 2, 3], {"sha256": "0" * 64, "bytes": 1},
    ]),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.text(max_size=3), max_size=4),
    st.dictionaries(st.text(max_size=3), st.none() | st.integers(), max_size=2),
)  # fmt: skip


@pytest.fixture(scope="module", params=["sequence", "token"])
def head(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    fields: dict[str, Any] = {
        "tenant": "acme",
        "temperature": 1.5,
        "trained_on": {"data": "a.csv", "sha256": "", "rows": 3, "options": {"rate": 0.1}},
        "licences": {"data": "CC BY"},
        "provenance": {"by": ["x"]},
        "accuracy": {"accuracy": 91.5},
    }
    if request.param == "sequence":
        fields["threshold"] = 0.5
    return small_head(tmp_path_factory.mktemp("head"), kind=request.param, **fields)


def tried(directory: Path) -> None:
    """Opens the head and runs it: a head that opens predicts."""
    try:
        opened = open_head(load_head(directory))
    except ArtefactError:
        return
    opened.predict(np.ones((4, WIDTH), np.float32))
    for label in opened.manifest.labels:
        label.encode()


many = settings(max_examples=200, suppress_health_check=list(HealthCheck), deadline=None)


@many
@given(st.data(), st.sampled_from([True, True, True, False]))
def test_any_manifest_gives_a_head_that_works_or_is_refused(
    head: Path, tmp_path: Path, data: st.DataObject, vouches: bool
) -> None:
    content = json.loads((head / FILE).read_text())
    altered = data.draw(mutations(content, anything))
    text = to_checksummed_json(altered) if vouches else json.dumps(altered)
    (tmp_path / FILE).write_bytes(text.encode(errors="surrogatepass"))
    (tmp_path / MODEL).write_bytes((head / MODEL).read_bytes())
    tried(tmp_path)


@many
@given(st.data())
def test_any_flipped_or_missing_byte_is_refused(
    head: Path, tmp_path: Path, data: st.DataObject
) -> None:
    for name in (FILE, MODEL):
        (tmp_path / name).write_bytes((head / name).read_bytes())
    name = data.draw(st.sampled_from([FILE, MODEL]))
    content = bytearray((head / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:place]
    else:
        content[place] ^= data.draw(st.integers(1, 255))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtefactError):
        load_head(tmp_path)


@settings(many, derandomize=True)  # the runtime's parser is not ours to fuzz in every run
@given(st.data())
def test_any_model_with_a_checksum_works_or_is_refused(
    head: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """Checksums are made again, so that what is tested is what lies behind them."""
    content = json.loads((head / FILE).read_text())
    model = bytearray((head / MODEL).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        model[data.draw(st.integers(0, len(model) - 1))] = data.draw(st.integers(0, 255))
    fields = {k: v for k, v in content.items() if k not in ("format", "model", "checksum")}
    write_head(tmp_path, fields, bytes(model))
    with contextlib.suppress(UnavailableError):  # logits that are no numbers
        tried(tmp_path)


@pytest.mark.parametrize(
    ("labels", "fields"),
    [
        (["O", "I-x"], {}),
        (["O", "B-", "I-"], {}),
        (["B-x", "I-x"], {}),
        (["O", "x"], {}),
        (["O", "B-x"], {"threshold": 0.5}),
        (["O", "B-x"], {"multi_label": True}),
    ],
)
def test_labels_of_a_token_head_are_bio_and_nothing_else(
    tmp_path: Path, labels: list[str], fields: dict[str, Any]
) -> None:
    with pytest.raises(ArtefactError):
        small_head(tmp_path, kind="token", labels=labels, **fields)
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "a..b", "-a", "a-", "x" * 65, "é"])
def test_an_id_is_a_name_that_paths_and_urls_can_hold(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtefactError, match="id"):
        small_head(tmp_path, name)


def test_a_written_head_can_be_read(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"tenant": "acme", "accuracy": {"accuracy": 91.5}}
    manifest = read_head_manifest(small_head(tmp_path, "a-b.c_1", version=7, **fields))
    assert (manifest.id, manifest.version, manifest.tenant) == ("a-b.c_1", 7, "acme")
    assert manifest.accuracy == {"accuracy": 91.5}


def test_a_writer_fills_in_the_checksums(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="leave format out of the fields: the writer sets them"):
        write_head(tmp_path, {"format": 1}, b"")
