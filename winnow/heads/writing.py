"""Writes a head: `head.onnx`, and `head.json` with the checksums of both files."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from winnow.errors import ArtefactError
from winnow.files.checksummed_json import to_checksummed_json
from winnow.files.durable import write_durably
from winnow.heads.manifest import FILE, FORMAT, MODEL, HeadManifest, read_head_manifest


def write_head(directory: Path, fields: Mapping[str, Any], model: bytes) -> HeadManifest:
    """Writes a head to `directory`, and creates the directory if needed. Replaces an existing head.

    Args:
        directory: the directory of the head.
        fields: JSON fields of `HeadManifest` without `format`, `model` and `checksum`.
        model: a serialised ONNX model.

    Raises:
        ArtefactError: the fields break a rule of the manifest. No manifest is left in `directory`.
        OSError: the files cannot be written.

    """
    reserved = {"format", "model", "checksum"} & set(fields)
    if reserved:
        raise ArtefactError(
            f"leave {', '.join(sorted(reserved))} out of the fields: the writer sets them"
        )
    directory.mkdir(parents=True, exist_ok=True)
    # removed first: after a crash, the old manifest must not stand beside the new model
    (directory / FILE).unlink(missing_ok=True)
    write_durably(directory / MODEL, model)
    entry = {"sha256": hashlib.sha256(model).hexdigest(), "bytes": len(model)}
    text = to_checksummed_json({"format": FORMAT, **fields, "model": entry})
    write_durably(directory / FILE, text.encode())
    try:
        return read_head_manifest(directory)
    except ArtefactError:
        (directory / FILE).unlink()
        raise
