"""JSON files that contain their own checksum, such as manifests.

Serialises and verifies such files; does not know their other fields.
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

CHECKSUM_FIELD = "checksum"
"""Name of the field that holds the hex SHA-256 of the file, computed with this field empty."""
_HEX = re.compile("[0-9a-f]{64}")


def to_checksummed_json(content: Mapping[str, Any]) -> str:
    """Serialises a JSON object and sets its checksum."""
    others = {name: value for name, value in content.items() if name != CHECKSUM_FIELD}
    text = json.dumps({**others, CHECKSUM_FIELD: ""}, indent=2) + "\n"
    # the last occurrence: a nested object may have a field of the same name
    before, field, after = text.rpartition(f'"{CHECKSUM_FIELD}": "')
    return before + field + _digest(text) + after


def has_valid_checksum(text: str, content: Mapping[str, Any]) -> bool:
    """Returns whether the checksum in `content` matches `text`, from which it was parsed."""
    claimed = content.get(CHECKSUM_FIELD)
    if not isinstance(claimed, str) or not _HEX.fullmatch(claimed):
        return False
    return _digest(text.replace(claimed, "", 1)) == claimed


def check_checksum(text: str, content: Mapping[str, Any], path: object, advice: str = "") -> None:
    """Raises ArtefactError if the checksum in `content` does not match `text`.

    `path` names the file in the message, which ends with `advice`.
    """
    if not has_valid_checksum(text, content):
        raise ArtefactError(f"{path} is damaged: its checksum does not match{advice}")


def open_json(path: Path, what: str) -> OpenFile:
    """Opens a JSON file; raises ArtefactError if the file cannot be opened.

    `what`: the expected thing, such as `a bundle`; the message asks whether the path is one.
    """
    try:
        return OpenFile(path)
    except ArtefactError as error:
        raise ArtefactError(f"{error}; is this {what}?") from error


def read_json_object(file: OpenFile) -> tuple[str, dict[str, Any]]:
    """Returns the text of a JSON file and its object.

    Raises ArtefactError if the file cannot be read, or holds no JSON object.
    """
    return parse_json_object(file.read(file.size, 0), file.path)


def parse_json_object(data: bytes, path: object) -> tuple[str, dict[str, Any]]:
    """Returns the text of a JSON file and its object; `path` names the file in errors.

    Raises ArtefactError if the file holds no JSON object.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ArtefactError(f"{path} is damaged: {error}") from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{path} is damaged: it is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ArtefactError(f"{path} is damaged: it is not a JSON object")
    return text, content


def parse_checksummed_json(data: bytes, path: object, advice: str = "") -> dict[str, Any]:
    """Parses a JSON file and verifies its checksum; `path` names the file in errors.

    Raises ArtefactError if the file holds no JSON object. If the checksum does not match, the
    message ends with `advice`.
    """
    text, content = parse_json_object(data, path)
    check_checksum(text, content, path, advice)
    return content


def first_violation(error: ValidationError) -> str:
    """Describes the first invalid field, and the rule that it breaks."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
