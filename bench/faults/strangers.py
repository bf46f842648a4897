"""Content nodes that do not belong to the index that is served."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.bundle import default_bundle
from winnow.bundle.manifest import FILE
from winnow.files.vouching import vouched

_REFUSED = "winnow_front_refused_nodes"
_NOT_LOADED = "winnow_front_not_loaded_nodes"


@dataclass(frozen=True, slots=True)
class Stranger:
    """A node of an altered copy of a shard, or with an altered copy of the bundle."""

    said: str
    """What is wrong with it, in words."""
    counted: str
    """The metric of the front that counts it."""
    shard: tuple[str, Any] | None = None
    """An entry of the shard's manifest, and what it is altered to."""
    score: tuple[str, float] | None = None
    """The same of the bundle's score."""

    def node(self, shard: Path, scratch: Path) -> list[str]:
        """Makes what it serves under `scratch`; the arguments that start it."""
        copy, bundle = scratch / "shard", scratch / "bundle"
        shutil.copytree(shard, copy)
        shutil.copytree(default_bundle(), bundle)
        _alter(copy / "manifest.json", (), self.shard)
        _alter(bundle / FILE, ("score",), self.score)
        return ["node", "--shard", str(copy), "--bundle", str(bundle)]


STRANGERS = {
    "index": Stranger("a shard of another index", _REFUSED, shard=("index_id", "another")),
    "bundle": Stranger("a node with another bundle", _REFUSED, score=("span", 1.0)),
    "dimension": Stranger("a shard of another dimension", _NOT_LOADED, shard=("dimension", 128)),
}


def _alter(file: Path, within: tuple[str, ...], entry: tuple[str, Any] | None) -> None:
    if entry is None:
        return
    manifest = part = json.loads(file.read_text(encoding="utf-8"))
    for name in within:
        part = part[name]
    part[entry[0]] = entry[1]
    file.write_text(vouched(manifest), encoding="utf-8")
