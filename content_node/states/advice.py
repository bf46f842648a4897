"""What people are told of states: whose they are, and what to type where they are lacking."""

import shlex
from pathlib import Path

from winnow.bundle import default_bundle
from winnow.bundle.manifest import read_manifest
from winnow.content_node.merging.names import LIVE, sequence_of
from winnow.errors import ArtefactError


def remedy(directory: Path, bundle: Path | None = None) -> str:
    """The command that makes the states of an index, or of a shard that `directory` is or is a
    generation of. Without a bundle it says which one is meant.
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
    """Names the reader whose lower layers made states."""
    try:
        default = read_manifest(default_bundle()).lower_fingerprint
    except ArtefactError:
        return f"reader {fingerprint}"
    if fingerprint == default:
        return "the default bundle's reader"
    return f"another reader than the default bundle's ({fingerprint})"
