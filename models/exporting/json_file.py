"""Reading a JSON file of a checkpoint."""

import json
from pathlib import Path
from typing import Any

from models.exporting.errors import CheckpointError


def read_json(path: Path) -> Any:
    """What `path` holds.

    Raises:
        CheckpointError: it is missing, or is not JSON.

    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(
            f"cannot read {path}: {error.strerror}; is this the whole download?"
        ) from error
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON: {error}; download it again") from error


def read_object(path: Path) -> dict[str, Any]:
    """The object that `path` holds.

    Raises:
        CheckpointError: it is missing, or is not a JSON object.

    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise CheckpointError(
            f"{path} holds a {type(found).__name__}, an object is needed: download it again"
        )
    return found
