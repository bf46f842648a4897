"""Manifests that vouch for themselves: JSON files with the checksum of all their other bytes.

Knows how such a file is written and checked; does not know what is in it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

FIELD = "checksum"
"""The field that holds it: the SHA-256, in hex, of the file as it is with an empty checksum."""
_HEX = re.compile("[0-9a-f]{64}")


def vouched(content: Mapping[str, Any]) -> str:
    """The text of a file that vouches for `content`; the checksum in `content` is replaced."""
    others = {name: value for name, value in content.items() if name != FIELD}
    text = json.dumps({**others, FIELD: ""}, indent=2) + "\n"
    # the last one: a value further up may be called the same
    before, field, after = text.rpartition(f'"{FIELD}": "')
    return before + field + _digest(text) + after


def is_vouched(text: str, content: Mapping[str, Any]) -> bool:
    """Whether `text`, which holds `content`, is unchanged, byte for byte."""
    claimed = content.get(FIELD)
    if not isinstance(claimed, str) or not _HEX.fullmatch(claimed):
        return False
    return _digest(text.replace(claimed, "", 1)) == claimed


def open_object(path: Path, what: str) -> OpenFile:
    """Opens a JSON file. Raises ArtefactError, which asks whether it is `what`, if that fails."""
    try:
        return OpenFile(path)
    except ArtefactError as error:
        raise ArtefactError(f"{error}; is this {what}?") from error


def read_object(file: OpenFile) -> tuple[str, dict[str, Any]]:
    """The text of a JSON file and the object in it. Raises ArtefactError if it cannot be read, or
    holds something else.
    """
    return parsed_object(file.read(file.size, 0), file.path)


def parsed_object(data: bytes, place: object) -> tuple[str, dict[str, Any]]:
    """The text of a JSON file and the object in it; `place` names the file. Raises ArtefactError if
    it holds something else.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ArtefactError(f"{place} is damaged: {error}") from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{place} is damaged: it is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ArtefactError(f"{place} is damaged: it is not a JSON object")
    return text, content


def vouched_object(data: bytes, place: object, mend: str = "") -> dict[str, Any]:
    """The object in a JSON file that vouches for itself; `place` names the file. Raises
    ArtefactError if it holds something else, or is altered; the message ends in `mend`.
    """
    text, content = parsed_object(data, place)
    if not is_vouched(text, content):
        raise ArtefactError(f"{place} is damaged: it is not as it was written{mend}")
    return content


def first_fault(error: ValidationError) -> str:
    """The field that breaks the first rule, and the rule."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
