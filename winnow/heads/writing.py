"""Writing a head: `head.onnx`, and the `head.json` that vouches for it and for itself."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from winnow.errors import ArtefactError
from winnow.files.durable import write_durably
from winnow.files.vouching import vouched
from winnow.heads.manifest import FILE, FORMAT, MODEL, HeadManifest, read_head_manifest


def write_head(directory: Path, fields: Mapping[str, Any], model: bytes) -> HeadManifest:
    """Writes a head into `directory`, which is made if need be, over a head that is there.

    Args:
        directory: of the head alone.
        fields: of `HeadManifest`, as JSON has them; `format`, `model` and `checksum` are filled in.
        model: a serialised ONNX model.

    Raises:
        ArtefactError: the fields break a rule of the manifest; nothing that can be opened is there.
        OSError: it cannot be written.

    """
    unknown = {"format", "model", "checksum"} & set(fields)
    if unknown:
        raise ArtefactError(f"{', '.join(sorted(unknown))} of a head is filled in by the writer")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / FILE).unlink(missing_ok=True)  # never one head's manifest beside another's model
    write_durably(directory / MODEL, model)
    entry = {"sha256": hashlib.sha256(model).hexdigest(), "bytes": len(model)}
    text = vouched({"format": FORMAT, **fields, "model": entry})
    write_durably(directory / FILE, text.encode())
    try:
        return read_head_manifest(directory)
    except ArtefactError:
        (directory / FILE).unlink()
        raise
