"""The file of passages that the served retriever found for training questions.

The first line says what they were retrieved with. Each further line has a question.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from models.data import DataError, Passage
from models.mining.retrievers import ScoredPassage
from winnow.bundle import Bundle

Origin = Mapping[str, str | float]
"""What passages were retrieved with, by name. Names are keys on disk, and stand in errors."""


def encoder_origin(bundle: Bundle) -> Origin:
    """Returns the part of an origin that distances depend on."""
    manifest = bundle.manifest
    question = manifest.files[manifest.encoder.question].sha256
    parts = manifest.encoding_fingerprint, question, manifest.encoder.max_question_tokens
    return {"encoder": _digest(parts)}


def retrieval_origin(bundle: Bundle, index: str, excluded: Iterable[str]) -> Origin:
    """Returns the origin of passages.

    `index` identifies the index; `excluded` are texts that are left out.
    """
    return {
        **encoder_origin(bundle),
        "index": index,
        "word weight": bundle.manifest.retrieval.words,
        "set of excluded passages": _digest(sorted(excluded)),
    }


def read_retrieved(path: Path, origin: Origin) -> dict[str, list[ScoredPassage]]:
    """Returns the retrieved passages by question; none if there is no file.

    Leaves out an incomplete last line.

    Raises:
        DataError: the passages have another origin in one of the given names, or a line is damaged.

    """
    lines = _complete_lines(path)
    if not lines:
        return {}
    first, *rows = lines
    try:
        stored = json.loads(first)
        others = [name for name, value in origin.items() if stored.get(name) != value]
        if not others:
            return dict(_parse(row) for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is damaged, remove it to retrieve again: {error!r}") from error
    raise DataError(
        f"the passages in {path} were retrieved with another {' and another '.join(others)}: "
        "remove the file to retrieve again, or set --work to another directory"
    )


def open_retrieved(path: Path, origin: Origin) -> TextIO:
    """Opens the file to append lines. A new file gets the line of its origin.

    Removes an incomplete last line.
    """
    lines = _complete_lines(path)
    size = sum(len(line) + 1 for line in lines)
    file = path.open("a", encoding="utf-8")
    file.truncate(size)
    if not lines:
        file.write(json.dumps(dict(origin)) + "\n")
    return file


def retrieved_row(question: str, passages: Sequence[ScoredPassage]) -> str:
    """Returns the line of a question."""
    row = {"question": question, "found": [asdict(each) for each in passages]}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _complete_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def _parse(line: bytes) -> tuple[str, list[ScoredPassage]]:
    row = json.loads(line)
    found = [
        ScoredPassage(Passage(**each["passage"]), each["distance"], each["words"])
        for each in row["found"]
    ]
    return row["question"], found
