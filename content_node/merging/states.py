"""Carries precomputed states to the next generation: copies known ones, computes missing ones."""

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
"""Threads that compute states: only one, because answering questions has priority."""
MAX_COMPUTED = 2_000
"""Passages whose states one merge may compute: a minute of one busy core."""


def carry_states(bundle: Path, shard: Path, base: Path, generation: Path) -> str:
    """Writes states for `generation` if `base` or the built `shard` has some.

    Returns why passages are left without states, or "" if no passage is. Raises ArtefactError if
    the states are not of the bundle's reader, or a passage or the bundle cannot be read. Raises
    OSError if there is no room even for an empty states file.
    """
    sources = [each for each in dict.fromkeys((base, shard)) if (each / STATES_FILE).exists()]
    if not sources:
        return ""
    loaded = load_bundle(bundle)
    known = open_reusable_states(sources, loaded.manifest.lower_layers_fingerprint)
    if not known:
        raise ArtefactError(f"the states are not of the reader of bundle {loaded.manifest.name}")
    lower = open_lower_layers(loaded, Tokenizer(loaded.tokenizer).special)
    merged = read_shard_manifest(generation).sequence - read_shard_manifest(base).sequence
    return write_carried_states(generation, lower, known, max(MAX_COMPUTED, 2 * merged))


def write_carried_states(
    generation: Path, lower: LowerLayers, known: Sequence[GenerationStates], max_computed: int
) -> str:
    """Copies known states, and computes those of at most `max_computed` other passages.

    On a full disk it writes an empty states file, which shows the next merge that the shard uses
    states. Returns and raises as `carry_states`.
    """
    try:
        writer = StatesWriter(generation, lower, known)
        _write(writer, max_computed)
    except OSError as error:
        _write(StatesWriter(generation, lower), 0)
        return f"there is no room ({error}): a later merge with enough room computes the states"
    if not writer.missing:
        return ""
    return f"{writer.missing} passages have no states yet: each merge computes some"


def _write(writer: StatesWriter, max_computed: int) -> None:
    writer.write(_THREADS, lambda *_: None, lambda _: None, max_computed)
