"""Tests of vocabularies of checkpoints: `tokenizer.json` or `vocab.txt`."""

import json
from pathlib import Path

import pytest
import tokenizers
from checkpoints import TOKENS, make, write_json, write_words
from transformers import BertTokenizer

from models.exporting.files import VocabularyError
from models.exporting.layout import read_checkpoint
from models.exporting.vocabulary import read_vocabulary, save_vocabulary, shared_vocabulary
from winnow.text.tokenizer import Tokenizer

TEXTS = ["Who won the tours?", "Danube RISES in the Black Forest; 2,850 km", "Dvořák, naïve — 漢字"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make("bert", tmp_path / "bert")


@pytest.mark.parametrize("lower", [True, False, None])
def test_vocab_txt_gives_the_same_tokenizer_as_transformers(
    directory: Path, tmp_path: Path, lower: bool | None
) -> None:
    """Lower case is the default, as in BERT's own code."""
    if lower is not None:
        write_json(directory / "tokenizer_config.json", {"do_lower_case": lower})
    theirs = BertTokenizer(str(directory / "vocab.txt"), do_lower_case=lower is not False)
    save_vocabulary(read_vocabulary(read_checkpoint(directory)), tmp_path / "tokenizer.json")
    ours = Tokenizer(tmp_path / "tokenizer.json")
    assert (ours.special.cls, ours.special.sep) == (theirs.cls_token_id, theirs.sep_token_id)
    for text in TEXTS:
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        assert list(ours.tokenise(text).ids) == expected
    upper, small = (ours.tokenise(text).ids for text in ("DANUBE", "danube"))
    assert (upper == small) == (lower is not False)


def test_tokenizer_json_is_preferred_and_its_truncation_removed(
    directory: Path, tmp_path: Path
) -> None:
    tokenizer = read_vocabulary(read_checkpoint(directory))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "vocab.txt").write_text("nonsense")
    save_vocabulary(read_vocabulary(read_checkpoint(directory)), tmp_path / "tokenizer.json")
    content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    assert content["truncation"] is content["padding"] is None
    assert len(Tokenizer(tmp_path / "tokenizer.json").tokenise("the tour " * 20)) == 40


def test_a_missing_vocabulary_is_named(directory: Path) -> None:
    (directory / "vocab.txt").unlink()
    with pytest.raises(VocabularyError, match=r"bert has neither tokenizer\.json nor vocab\.txt"):
        read_vocabulary(read_checkpoint(directory))


def test_a_damaged_vocabulary_is_named(directory: Path) -> None:
    (directory / "tokenizer.json").write_text("{")
    with pytest.raises(VocabularyError, match=r"tokenizer\.json cannot be opened"):
        read_vocabulary(read_checkpoint(directory))


@pytest.mark.parametrize("tokens", [TOKENS + 1, TOKENS - 100])
def test_a_vocabulary_of_another_network_is_refused(directory: Path, tokens: int) -> None:
    write_words(directory, tokens)
    with pytest.raises(VocabularyError, match=f"has {tokens} tokens, .* embeddings for {TOKENS}"):
        read_vocabulary(read_checkpoint(directory))


def test_an_embedding_table_may_be_padded(directory: Path) -> None:
    write_words(directory, TOKENS - 10)
    assert read_vocabulary(read_checkpoint(directory)).get_vocab_size() == TOKENS - 10


def test_a_vocabulary_without_separators_is_refused(directory: Path) -> None:
    path = directory / "vocab.txt"
    path.write_text(path.read_text().replace("[SEP]", "<sep>"))
    with pytest.raises(
        VocabularyError, match=r"vocab\.txt cannot be opened .* sep_token not found"
    ):
        read_vocabulary(read_checkpoint(directory))
    words = {f"word{number}": number for number in range(TOKENS)}
    other = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="word0"))
    other.save(str(directory / "tokenizer.json"))
    with pytest.raises(VocabularyError, match=r"bert has no \[CLS\] and no \[SEP\]"):
        read_vocabulary(read_checkpoint(directory))


def test_networks_with_different_vocabularies_are_refused(directory: Path, tmp_path: Path) -> None:
    other = make("bert-reader", tmp_path / "other")
    path = other / "vocab.txt"
    path.write_text(path.read_text().replace("danube", "rhine"))
    with pytest.raises(VocabularyError, match=r"bert and .*other have different vocabularies"):
        shared_vocabulary([read_checkpoint(directory), read_checkpoint(other)])


def test_networks_that_disagree_about_upper_case_are_refused(
    directory: Path, tmp_path: Path
) -> None:
    other = make("bert-reader", tmp_path / "other")
    write_json(other / "tokenizer_config.json", {"do_lower_case": False})
    with pytest.raises(VocabularyError, match="cut the same text into different tokens"):
        shared_vocabulary([read_checkpoint(directory), read_checkpoint(other)])
