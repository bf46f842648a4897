"""A bundle is what its manifest says, or it is refused by name."""

import json
import re
import shutil
from pathlib import Path

import pytest
from damaged_files import flip_bit
from whole_bundle import WHOLE

from winnow.bundle import Bundle, Manifest, load_bundle, read_manifest
from winnow.domain.text_relevance import FALLBACK, TextRelevance
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import to_checksummed_json


@pytest.fixture
def copy(bundle: Bundle, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bundle.directory, tmp_path / "bundle"))


def test_the_default_bundle_is_whole_and_says_where_it_comes_from(bundle: Bundle) -> None:
    manifest = bundle.manifest
    assert manifest.licences
    assert manifest.provenance["weights"]
    assert sum(entry.bytes for entry in manifest.files.values()) <= 48e6


def test_the_default_bundle_carries_its_measured_accuracy(bundle: Bundle) -> None:
    gold = bundle.manifest.accuracy["gold"]
    for name in ("dev-squad", "dev-nq"):
        assert 0 < gold[name]["int8"]["em"] <= 100
        assert set(bundle.manifest.accuracy["passages_read"][name]) >= {"1", "2", "5", "10"}


def test_the_default_reader_is_in_halves_and_serves_what_the_whole_one_served(
    bundle: Bundle,
) -> None:
    """Indexes and heads belong to the encoder."""
    manifest, whole = bundle.manifest, load_bundle(WHOLE).manifest
    assert manifest.lower_layers_fingerprint
    assert not whole.lower_layers_fingerprint
    assert manifest.encoding_fingerprint == whole.encoding_fingerprint
    assert manifest.states_fingerprint == whole.states_fingerprint
    assert manifest.provenance["apart"]
    assert manifest.confidence is not None
    assert {entry.max_loss for entry in manifest.stopping} == {e.max_loss for e in whole.stopping}


def test_a_flipped_byte_is_refused_by_name(copy: Path) -> None:
    flip_bit(copy / "reader.onnx", 1_000_000)
    with pytest.raises(ArtefactError, match=r"reader\.onnx is damaged"):
        load_bundle(copy)


def test_an_altered_figure_in_the_manifest_is_refused_by_name(copy: Path) -> None:
    path = copy / "bundle.json"
    text = path.read_text(encoding="utf-8")
    altered = re.sub(r'("relevance": 0\.\d)', r"\g<1>1", text, count=1)
    assert altered != text
    path.write_text(altered, encoding="utf-8")
    with pytest.raises(ArtefactError, match=r"bundle\.json is damaged"):
        load_bundle(copy)


def test_a_manifest_without_a_checksum_of_itself_is_read_as_it_is(copy: Path) -> None:
    path = copy / "bundle.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["checksum"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert read_manifest(copy).name == content["name"]


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    with pytest.raises(ArtefactError, match=r"tokenizer\.json"):
        load_bundle(copy)


def test_a_directory_without_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="is this a bundle"):
        load_bundle(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "has format 99"),
        ({"reader": {"file": "x"}}, "not a bundle manifest"),
        ({"tokenizer": "other.json"}, "no checksum"),
        ({"files": {"../x": {"sha256": "", "bytes": 1}}}, "no checksum|must be in the bundle"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(
    copy: Path, change: dict[str, object], message: str
) -> None:
    path = copy / "bundle.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(to_checksummed_json({**content, **change}), encoding="utf-8")
    with pytest.raises(ArtefactError, match=message):
        read_manifest(copy)


def test_fingerprints_tell_encoding_and_scoring_apart(copy: Path) -> None:
    before = read_manifest(copy)
    content = json.loads((copy / "bundle.json").read_text(encoding="utf-8"))
    content["score"]["span"] += 0.5
    (copy / "bundle.json").write_text(to_checksummed_json(content), encoding="utf-8")
    after = read_manifest(copy)
    assert after.encoding_fingerprint == before.encoding_fingerprint
    assert after.fingerprint != before.fingerprint


def with_text_relevance(copy: Path, **entry: float) -> Manifest:
    content = json.loads((copy / "bundle.json").read_text(encoding="utf-8"))
    content["text_relevance"] = entry or None
    (copy / "bundle.json").write_text(to_checksummed_json(content), encoding="utf-8")
    return read_manifest(copy)


def test_a_bundle_may_have_weights_for_the_relevance_of_texts(copy: Path) -> None:
    """Answers of an index do not depend on them, so the fingerprint does not change."""
    without = with_text_relevance(copy)
    assert without.effective_text_relevance == FALLBACK
    fitted = with_text_relevance(copy, logit=0.5, words=2.0, bias=-1.0)
    assert fitted.effective_text_relevance == TextRelevance(logit=0.5, words=2.0, bias=-1.0)
    assert fitted.fingerprint == without.fingerprint
    with pytest.raises(ArtefactError, match=r"text_relevance\.words"):
        with_text_relevance(copy, logit=0.5, words=-2.0, bias=-1.0)


def rewritten(copy: Path, late: bool, span: float, minimum: float, late_minimum: float) -> Manifest:
    """The manifest with other weights of scores."""
    content = json.loads((copy / "bundle.json").read_text(encoding="utf-8"))
    score = {**content["score"], "span": span, "min_confidence": minimum}
    content["late_interaction"] = None
    if late:
        own = {**score, "hybrid": -1.0, "min_confidence": late_minimum}
        content["late_interaction"] = {
            "file": content["tokenizer"],
            "values": 8,
            "words": 0.1,
            "tokens": 0.2,
            "score": own,
        }
    (copy / "bundle.json").write_text(to_checksummed_json({**content, "score": score}))
    return read_manifest(copy)


def test_a_minimum_confidence_makes_no_other_bundle_with_late_interaction(copy: Path) -> None:
    first = rewritten(copy, True, 0.5, 0.2, 0.3)
    assert first.fingerprint == rewritten(copy, True, 0.5, 0.6, 0.3).fingerprint
    assert first.fingerprint == rewritten(copy, True, 0.5, 0.2, 0.6).fingerprint
    assert first.fingerprint != rewritten(copy, True, 0.6, 0.2, 0.3).fingerprint
    assert first.answer_calibration().threshold.confidence == 0.2
    assert first.answer_calibration(late_interaction=True).threshold.confidence == 0.3


def test_a_minimum_confidence_makes_another_bundle_as_in_older_versions(copy: Path) -> None:
    first = rewritten(copy, False, 0.5, 0.2, 0.3)
    assert first.fingerprint != rewritten(copy, False, 0.5, 0.6, 0.3).fingerprint
    assert first.answer_calibration(late_interaction=True) == first.answer_calibration()


def test_the_default_bundle_serves_indexes_with_and_without_token_vectors(bundle: Bundle) -> None:
    for late in (False, True):
        assert bundle.manifest.stopping_rule(0.3, late_interaction=late) is not None
        calibration = bundle.manifest.answer_calibration(late_interaction=late)
        assert calibration.confidence is not None
        assert calibration.sentence_confidence is not None
