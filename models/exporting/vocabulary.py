"""Reads the tokenizer of a checkpoint from `tokenizer.json` or `vocab.txt`."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import BertWordPieceTokenizer, Tokenizer

from models.assemble import remove_tokenizer_limits
from models.exporting.files import VocabularyError, read_json_object
from models.exporting.layout import Checkpoint

_MAX_UNUSED_ROWS = 64
"""Maximum number of padding rows in an embedding table."""
_SPECIAL_TOKENS = ("[CLS]", "[SEP]")
_PROBE = "Who wrote Rusalka? Antonín DVOŘÁK; 2,850 km — 漢字, naïve İstanbul"
"""Text that tokenizers with equal vocabularies may split differently."""


def read_vocabulary(checkpoint: Checkpoint) -> Tokenizer:
    """Returns the checkpoint's tokenizer, without truncation and padding.

    Raises:
        VocabularyError: the tokenizer is missing, damaged, or does not fit the embedding table.

    """
    tokenizer = _open_tokenizer(checkpoint.transformer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    vocabulary = tokenizer.get_vocab()
    if missing := [token for token in _SPECIAL_TOKENS if token not in vocabulary]:
        raise VocabularyError(
            f"the vocabulary of {checkpoint.directory} has no {' and no '.join(missing)}: "
            "a BERT vocabulary is needed"
        )
    words, rows = max(vocabulary.values()) + 1, checkpoint.vocabulary_size
    if not words <= rows < words + _MAX_UNUSED_ROWS:
        raise VocabularyError(
            f"the vocabulary of {checkpoint.directory} has {words} tokens, but its network has "
            f"embeddings for {rows}: use the vocabulary that it was trained with"
        )
    return tokenizer


def shared_vocabulary(checkpoints: Sequence[Checkpoint]) -> Tokenizer:
    """Returns the common tokenizer of all `checkpoints`.

    Passages are tokenised once for encoder and reader, so both need the same tokenizer.

    Raises:
        VocabularyError: a vocabulary does not fit its network, or two vocabularies differ.

    """
    first, *others = checkpoints
    tokenizer = read_vocabulary(first)
    for other in others:
        _require_same_tokenizer(first, tokenizer, other, read_vocabulary(other))
    return tokenizer


def save_vocabulary(tokenizer: Tokenizer, path: Path) -> None:
    """Writes `tokenizer.json` of a bundle."""
    tokenizer.save(str(path))
    remove_tokenizer_limits(path)


def _open_tokenizer(directory: Path) -> Tokenizer:
    for name, read in (("tokenizer.json", _from_json), ("vocab.txt", _from_word_list)):
        path = directory / name
        if path.is_file():
            try:
                return read(path)
            except Exception as error:  # the bindings raise bare Exception
                raise VocabularyError(
                    f"{path} cannot be opened as a vocabulary: {error}"
                ) from error
    raise VocabularyError(
        f"{directory} has neither tokenizer.json nor vocab.txt: download one of them"
    )


def _from_json(path: Path) -> Tokenizer:
    return Tokenizer.from_file(str(path))


def _from_word_list(path: Path) -> Tokenizer:
    """Returns a BERT tokenizer of `vocab.txt`. Lower case is the default."""
    settings_path = path.with_name("tokenizer_config.json")
    settings = read_json_object(settings_path) if settings_path.is_file() else {}
    tokenizer = BertWordPieceTokenizer(
        str(path),
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    return Tokenizer.from_str(tokenizer.to_str())


def _require_same_tokenizer(
    first: Checkpoint, tokenizer: Tokenizer, second: Checkpoint, other: Tokenizer
) -> None:
    if tokenizer.get_vocab() != other.get_vocab():
        difference = "have different vocabularies"
    elif tokenizer.encode(_PROBE).ids != other.encode(_PROBE).ids:
        difference = "cut the same text into different tokens (upper case, accents)"
    else:
        return
    raise VocabularyError(
        f"{first.directory} and {second.directory} {difference}: the encoders and the reader of a "
        "bundle share one vocabulary, so name networks of one family"
    )
