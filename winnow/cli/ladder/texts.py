"""Provides texts as token ids: texts of a file, or synthetic texts with CLINC150's lengths."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from winnow.bundle import load_bundle
from winnow.errors import ArtefactError
from winnow.files.compressed import open_bytes
from winnow.packaged import default_bundle
from winnow.text.tokenizer import Tokenizer

Ids = tuple[int, ...]
VOCABULARY = 30_522
"""Number of tokens in BERT's vocabulary."""
MAX_TOKENS = 126
"""Maximum number of tokens of a text, without [CLS] and [SEP]."""
_FIRST_WORD = 1_000
_KEYS = ("text", "question")

CLINC150 = {
    1: 61, 2: 186, 3: 419, 4: 989, 5: 1604, 6: 2442, 7: 2961, 8: 3008, 9: 2849, 10: 2411,
    11: 1868, 12: 1417, 13: 1032, 14: 763, 15: 484, 16: 417, 17: 250, 18: 161, 19: 131, 20: 81,
    21: 69, 22: 36, 23: 21, 24: 22, 25: 7, 26: 2, 27: 4, 28: 2, 29: 1, 30: 1, 31: 1,
}  # fmt: skip
"""Number of texts of CLINC150 (Larson et al. 2019, all 23 700) by length in tokens of the default
bundle, without [CLS] and [SEP]. The mean length is 9."""


def synthetic_texts(number: int, rng: Random) -> list[Ids]:
    """Texts of random tokens, with lengths distributed as in CLINC150."""
    lengths = rng.choices(list(CLINC150), list(CLINC150.values()), k=number)
    return [tuple(rng.randrange(_FIRST_WORD, VOCABULARY) for _ in range(n)) for n in lengths]


def read_texts(path: Path) -> list[Ids]:
    """Reads and tokenises the texts of a file: JSON lines or CSV, with `text`.

    Raises ArtefactError if the file cannot be read, or has no texts.
    """
    tokenizer = Tokenizer(load_bundle(default_bundle()).tokenizer)
    with open_bytes(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig")
        try:
            ids = [tokenizer.tokenise(text).ids[:MAX_TOKENS] for text in _texts(path, lines)]
        except (UnicodeDecodeError, csv.Error, json.JSONDecodeError) as error:
            raise ArtefactError(f"{path} cannot be read as texts: {error}") from error
    if not (texts := [each for each in ids if each]):
        raise ArtefactError(f"{path} has no texts: expected JSON lines or CSV with `text`")
    return texts


def _texts(path: Path, lines: io.TextIOWrapper) -> Iterator[str]:
    rows: Iterator[object]
    if ".csv" in path.suffixes:
        rows = iter(csv.DictReader(lines))
    else:
        rows = (json.loads(line) for line in lines if line.strip())
    for row in rows:
        fields = row if isinstance(row, dict) else {}
        yield next((fields[key] for key in _KEYS if isinstance(fields.get(key), str)), "")
