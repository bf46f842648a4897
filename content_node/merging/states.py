"""The precomputed states of the next generation: copied where they are known, else computed."""

from collections.abc import Sequence
from pathlib import Path

from winnow.bundle import load_bundle
from winnow.content_node.reader.lower_layers import LowerLayers, open_lower_layers
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.manifest import STATES_FILE
from winnow.content_node.states.reusable_states import GenerationStates, open_reusable_states
from winnow.content_node.states.writing import StatesWriter
from winnow.errors import ArtefactError
from winnow.text.tokenizer import Tokenizer

_THREADS = 1
"""One, since all answers of the node go first."""
COMPUTED = 2_000
"""Passages whose states a merge may compute: a minute of one busy core."""


def carry_states(bundle: Path, shard: Path, base: Path, made: Path) -> str:
    """Puts states beside `made` if there are some beside `base`, or beside `shard` as it was built.

    Returns why passages are left without states; empty if none is. Raises ArtefactError if the
    states are not of the bundle's reader, or a passage or the bundle cannot be read. Raises OSError
    if there is no room at all.
    """
    sources = [each for each in dict.fromkeys((base, shard)) if (each / STATES_FILE).exists()]
    if not sources:
        return ""
    loaded = load_bundle(bundle)
    known = open_reusable_states(sources, loaded.manifest.lower_fingerprint)
    if not known:
        raise ArtefactError(f"they are not of the reader of bundle {loaded.manifest.name}")
    lower = open_lower_layers(loaded, Tokenizer(loaded.tokenizer).special)
    return write_states(made, lower, known, max(COMPUTED, 2 * _writes(base, made)))


def write_states(
    made: Path, lower: LowerLayers, known: Sequence[GenerationStates], most: int
) -> str:
    """Puts states beside `made`: the known ones, and those of at most `most` more passages.

    Without room, it puts states of no passage there: they tell the next merge that the shard is to
    have some. Returns and raises as `carry_states`.
    """
    try:
        writer = StatesWriter(made, lower, known)
        _write(writer, most)
    except OSError as error:
        _write(StatesWriter(made, lower), 0)
        return f"there is no room ({error}): a merge that finds some makes them again"
    if not writer.missing:
        return ""
    return f"{writer.missing} passages have none yet: each merge makes some"


def _write(writer: StatesWriter, most: int) -> None:
    writer.write(_THREADS, lambda *_: None, lambda _: None, most)


def _writes(base: Path, made: Path) -> int:
    return read_shard_manifest(made).sequence - read_shard_manifest(base).sequence
