"""Vocabularies: from `tokenizer.json`, or made from `vocab.txt`.

Knows files and tokenizers; knows networks only by how many embeddings they have.
"""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import BertWordPieceTokenizer, Tokenizer

from models.assemble import plain_tokenizer
from models.exporting.files import VocabularyError, read_json_object
from models.exporting.layout import Checkpoint

_SPARE = 64
"""Embedding tables are padded to a multiple of this; the rest must be words."""
_FRAME = ("[CLS]", "[SEP]")
_PROBE = "Who wrote Rusalka? Antonín DVOŘÁK; 2,850 km — 漢字, naïve İstanbul"
"""Upper case, accents, Chinese and punctuation: where tokenizers of one vocabulary differ."""


def read_vocabulary(checkpoint: Checkpoint) -> Tokenizer:
    """Returns the checkpoint's tokenizer, without truncation and padding.

    Raises:
        VocabularyError: there is none, it is damaged, or it does not fit the embedding table.

    """
    tokenizer = _open(checkpoint.transformer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    known = tokenizer.get_vocab()
    if missing := [token for token in _FRAME if token not in known]:
        raise VocabularyError(
            f"the vocabulary of {checkpoint.directory} has no {' and no '.join(missing)}: "
            "a BERT vocabulary is needed"
        )
    words, rows = max(known.values()) + 1, checkpoint.tokens
    if not words <= rows < words + _SPARE:
        raise VocabularyError(
            f"the vocabulary of {checkpoint.directory} has {words} tokens, its network has "
            f"embeddings for {rows}: put the vocabulary there that it was trained with"
        )
    return tokenizer


def shared_vocabulary(checkpoints: Sequence[Checkpoint]) -> Tokenizer:
    """Returns the one tokenizer of all `checkpoints`.

    Passages are tokenised once, for the encoder and the reader alike.

    Raises:
        VocabularyError: one has no fitting vocabulary, or two differ.

    """
    first, *others = checkpoints
    tokenizer = read_vocabulary(first)
    for other in others:
        _require_same(first, tokenizer, other, read_vocabulary(other))
    return tokenizer


def save_vocabulary(tokenizer: Tokenizer, path: Path) -> None:
    """Writes `tokenizer.json` as bundles have it."""
    tokenizer.save(str(path))
    plain_tokenizer(path)


def _open(directory: Path) -> Tokenizer:
    whole, words = directory / "tokenizer.json", directory / "vocab.txt"
    if not whole.is_file() and not words.is_file():
        raise VocabularyError(
            f"{directory} has neither {whole.name} nor {words.name}: download one"
        )
    chosen = whole if whole.is_file() else words
    try:
        return Tokenizer.from_file(str(whole)) if chosen is whole else _from_words(words)
    except Exception as error:  # the bindings raise bare Exception
        raise VocabularyError(f"{chosen} cannot be opened as a vocabulary: {error}") from error


def _from_words(words: Path) -> Tokenizer:
    """Returns a BERT tokenizer over `vocab.txt`; lower case unless its settings say otherwise."""
    path = words.with_name("tokenizer_config.json")
    settings = read_json_object(path) if path.is_file() else {}
    made = BertWordPieceTokenizer(
        str(words),
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    return Tokenizer.from_str(made.to_str())


def _require_same(
    first: Checkpoint, tokenizer: Tokenizer, second: Checkpoint, other: Tokenizer
) -> None:
    if tokenizer.get_vocab() != other.get_vocab():
        what = "have different vocabularies"
    elif tokenizer.encode(_PROBE).ids != other.encode(_PROBE).ids:
        what = "cut the same text into different tokens (upper case, accents)"
    else:
        return
    raise VocabularyError(
        f"{first.directory} and {second.directory} {what}: the encoders and the reader of a "
        "bundle share one, so name networks of one family"
    )
