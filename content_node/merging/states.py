"""Carries precomputed data to the next generation: copies known data, computes missing data."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from winnow.bundle import load_bundle
from winnow.content_node.merging.merge import carry_or_explain
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.index import fingerprint_of, open_states_model
from winnow.content_node.states.model import StatesModel
from winnow.content_node.states.reusable_states import GenerationStates, open_reusable_states
from winnow.content_node.states.writing import StatesWriter
from winnow.errors import ArtefactError
from winnow.reading.states_kind import KINDS, StatesKind

_THREADS = 1
"""Threads that compute data: only one, because answering questions has priority."""
MAX_COMPUTED = 2_000
"""Passages whose states one merge may compute: a minute of one busy core."""


def carry_states(bundle: Path, shard: Path, base: Path, generation: Path) -> str:
    """Writes each kind of data for `generation` that `base` or the built `shard` has.

    Returns why passages are left without data, or "" if no passage is. The data of one kind that
    cannot be written is left out, and the others are kept.
    """
    reasons = {
        kind: carry_or_explain(partial(_carry_kind, kind, bundle, shard), base, generation)
        for kind in KINDS
    }
    return "; ".join(
        f"{reason}; `winnow index {kind.command}` computes all"
        for kind, reason in reasons.items()
        if reason
    )


def _carry_kind(kind: StatesKind, bundle: Path, shard: Path, base: Path, generation: Path) -> str:
    """Carries one kind of data.

    Raises ArtefactError if the data is not of the bundle's model, or a passage or the bundle cannot
    be read. Raises OSError if there is no room even for an empty file.
    """
    sources = [each for each in dict.fromkeys((base, shard)) if (each / kind.manifest).exists()]
    if not sources:
        return ""
    loaded = load_bundle(bundle)
    known = open_reusable_states(sources, fingerprint_of(kind, loaded.manifest), kind)
    if not known:
        raise ArtefactError(
            f"the {kind.noun} are not of the {kind.model} of bundle {loaded.manifest.name}"
        )
    model = open_states_model(kind, loaded)
    merged = read_shard_manifest(generation).sequence - read_shard_manifest(base).sequence
    return write_carried_states(generation, model, known, max(MAX_COMPUTED, 2 * merged))


def write_carried_states(
    generation: Path, model: StatesModel, known: Sequence[GenerationStates], max_computed: int
) -> str:
    """Copies known data, and computes that of at most `max_computed` other passages.

    On a full disk it writes an empty file, which shows the next merge that the shard uses the data.
    Returns and raises as `carry_states`.
    """
    noun = model.kind.noun
    try:
        writer = StatesWriter(generation, model, known)
        _write_states(writer, max_computed)
    except OSError as error:
        _write_states(StatesWriter(generation, model), 0)
        return f"there is no room ({error}): a later merge with enough room computes the {noun}"
    if not writer.missing:
        return ""
    return f"{writer.missing} passages have no {noun} yet: each merge computes some"


def _write_states(writer: StatesWriter, max_computed: int) -> None:
    writer.write(_THREADS, lambda *_: None, lambda _: None, max_computed)
