"""Texts about precomputed states: the command that computes them, and the name of their reader."""

import shlex
from pathlib import Path

from winnow.bundle.manifest import read_manifest
from winnow.content_node.merging.names import LIVE, generation_sequence
from winnow.errors import ArtefactError
from winnow.packaged import default_bundle
from winnow.reading.states_kind import READER_STATES, StatesKind


def states_command(
    directory: Path, bundle: Path | None = None, kind: StatesKind = READER_STATES
) -> str:
    """Returns the command that computes data for an index, a shard or a shard's generation.

    Without a bundle, the text adds that `--bundle` may be needed.
    """
    sequence = generation_sequence(directory.name)
    is_generation = directory.parent.name == LIVE and sequence is not None
    argument = directory.parent.parent if is_generation else directory
    command = f"winnow index {kind.command} {shlex.quote(str(argument))}"
    if bundle is None:
        return f"`{command}` (with --bundle, if nodes have one)"
    if bundle == default_bundle():
        return f"`{command}`"
    return f"`{command} --bundle {shlex.quote(str(bundle))}`"


def reader_name(fingerprint: str) -> str:
    """Returns a name for the reader whose lower layers have this fingerprint."""
    try:
        default = read_manifest(default_bundle()).lower_layers_fingerprint
    except ArtefactError:
        return f"reader {fingerprint}"
    if fingerprint == default:
        return "the default bundle's reader"
    return f"another reader than the default bundle's ({fingerprint})"
