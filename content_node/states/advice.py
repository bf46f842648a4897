"""Advice on precomputed states: which reader they are of, and which command makes missing ones."""

import shlex
from pathlib import Path

from winnow.bundle import default_bundle
from winnow.bundle.manifest import read_manifest
from winnow.content_node.merging.names import LIVE, sequence_of
from winnow.errors import ArtefactError


def remedy(directory: Path, bundle: Path | None = None) -> str:
    """Returns the command that makes states for an index, a shard, or a generation's shard.

    Without a bundle it says that `--bundle` may be needed.
    """
    is_generation = directory.parent.name == LIVE and sequence_of(directory.name) is not None
    place = directory.parent.parent if is_generation else directory
    command = f"winnow index states {shlex.quote(str(place))}"
    if bundle is None:
        return f"`{command}` (with --bundle, if nodes have one)"
    if bundle == default_bundle():
        return f"`{command}`"
    return f"`{command} --bundle {shlex.quote(str(bundle))}`"


def whose(fingerprint: str) -> str:
    """Returns a name for the reader with these lower layers."""
    try:
        default = read_manifest(default_bundle()).lower_fingerprint
    except ArtefactError:
        return f"reader {fingerprint}"
    if fingerprint == default:
        return "the default bundle's reader"
    return f"another reader than the default bundle's ({fingerprint})"
