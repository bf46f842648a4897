"""What the hub's client noted beside the weights that it downloaded.

Knows both of its layouts: `hf download --local-dir` leaves a record of three lines (revision,
checksum, time) for each file, the shared cache names every file by its checksum
(https://huggingface.co/docs/huggingface_hub/guides/manage-cache).
"""

import re
from pathlib import Path

from models.exporting.errors import CheckpointError
from winnow.files.opened import sha256

_RECORDS = Path(".cache", "huggingface", "download")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def require_as_downloaded(directory: Path, file: Path) -> None:
    """Refuses a file that is not what the hub has; `directory` is the one that was downloaded.

    Raises:
        CheckpointError: it was altered, or did not arrive whole.

    """
    expected = _recorded(directory, file)
    if expected is not None and (found := sha256(file)) != expected:
        raise CheckpointError(
            f"{file} has SHA-256 {found}, the hub's has {expected}: download it again, or, if you "
            "changed it yourself, export a copy without the hub's records"
        )


def _recorded(directory: Path, file: Path) -> str | None:
    """The hub's checksum; None where there is none: small files have one of another kind."""
    record = directory / _RECORDS / f"{file.relative_to(directory)}.metadata"
    lines = record.read_text(encoding="utf-8").split() if record.is_file() else []
    blob = file.resolve()
    noted = [*lines[1:2], *([blob.name] if blob.parent.name == "blobs" else [])]
    return next((name for name in noted if _SHA256.fullmatch(name)), None)
