"""Carries precomputed data to the next generation: copies known data, computes missing data."""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from winnow.bundle import load_bundle
from winnow.bundle.manifest import BundleEncoder
from winnow.content_node.merging.copied_tokens import CopiedTokens
from winnow.content_node.merging.handed_tokens import HandedTokens
from winnow.content_node.merging.merge import carry_or_explain
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.states.index import fingerprint_of, open_states_model
from winnow.content_node.states.manifest import StatesManifest, read_states_manifest
from winnow.content_node.states.model import ReusableStates, StatesModel
from winnow.content_node.states.reusable_states import open_reusable_states
from winnow.content_node.states.writing import StatesWriter
from winnow.errors import ArtefactError
from winnow.quoting import many
from winnow.reading.states_kind import KINDS, TOKEN_VECTORS, StatesKind
from winnow.reading.stored_passage import StoredPassage

_THREADS = 1
"""Threads that compute data: only one, because answering questions has priority."""
MAX_COMPUTED = 2_000
"""Passages whose states one merge may compute: a minute of one busy core."""


def carry_states(
    bundle: Path, shard: Path, base: Path, generation: Path, handed: HandedTokens | None = None
) -> str:
    """Writes each kind of data for `generation` that `base` or the built `shard` has.

    `handed` has token vectors of passages that are not in `base`, which need not be computed.
    Returns why passages are left without data, or "" if no passage is. The data of one kind that
    cannot be written is left out, and the others are kept.
    """
    reasons = {
        kind: carry_or_explain(partial(_carry_kind, kind, bundle, shard, handed), base, generation)
        for kind in KINDS
    }
    return "; ".join(
        f"{reason}; `winnow index {kind.command}` computes all"
        for kind, reason in reasons.items()
        if reason
    )


def _carry_kind(
    kind: StatesKind,
    bundle: Path,
    shard: Path,
    handed: HandedTokens | None,
    base: Path,
    generation: Path,
) -> str:
    """Carries one kind of data. Returns and raises as `carry_states`.

    After a failure it writes an empty file, which shows the next merge that the shard uses the
    data.
    """
    sources = [each for each in dict.fromkeys((base, shard)) if (each / kind.manifest).exists()]
    if not sources:
        return ""
    try:
        return _carry_from(sources, kind, bundle, handed, base, generation)
    except Exception as error:
        if not _write_none(kind, sources, generation):
            raise
        return str(error) or repr(error)


def _carry_from(
    sources: Sequence[Path],
    kind: StatesKind,
    bundle: Path,
    handed: HandedTokens | None,
    base: Path,
    generation: Path,
) -> str:
    """Carries the data of one kind that `sources` have.

    Of another model, states are left out. Token vectors are copied then, but none are computed.

    Raises ArtefactError if a passage or the bundle cannot be read. Raises OSError if there is no
    room even for an empty file.
    """
    loaded = load_bundle(bundle)
    fingerprint = fingerprint_of(kind, loaded.manifest)
    known = open_reusable_states(sources, fingerprint, kind)
    newest = _newest_manifest(sources, kind)
    is_of_another = newest is not None and newest.fingerprint != fingerprint
    if newest is not None and is_of_another and (kind is TOKEN_VECTORS or not known):
        other = f"the {kind.noun} are not of the {kind.model} of bundle {loaded.manifest.name}"
        if kind is not TOKEN_VECTORS:
            return other
        missing = _copy_tokens(loaded.manifest.encoder, newest, sources, generation)
        return f"{other}, so {many(missing, 'passage')} got none" if missing else ""
    model = open_states_model(kind, loaded)
    reusable: list[ReusableStates] = [*known]
    if handed and (kind, model.fingerprint) == (TOKEN_VECTORS, handed.fingerprint):
        reusable.append(handed)
    merged = read_shard_manifest(generation).sequence - read_shard_manifest(base).sequence
    return write_carried_states(generation, model, reusable, max(MAX_COMPUTED, 2 * merged))


def _newest_manifest(sources: Sequence[Path], kind: StatesKind) -> StatesManifest | None:
    """Returns the first manifest that can be read; None if all are damaged."""
    for each in sources:
        with contextlib.suppress(ArtefactError):
            return read_states_manifest(each, kind)
    return None


class _LostModel:
    """A `StatesModel` that computes nothing. It only says which data a shard had."""

    def __init__(self, kind: StatesKind, manifest: StatesManifest) -> None:
        """`manifest` is that of the data."""
        self.kind = kind
        self.fingerprint, self.width = manifest.fingerprint, manifest.width

    def count_tokens(self, stored: StoredPassage) -> int:
        """Returns 0, since no passage gets data."""
        return 0

    def packed(self, stored: StoredPassage) -> bytes:
        """Raises ArtefactError."""
        raise ArtefactError(f"the {self.kind.noun} of passage {stored.passage.id} were lost")


def _write_none(kind: StatesKind, sources: Sequence[Path], generation: Path) -> bool:
    """Writes an empty file of the data that `sources` have; returns whether one is readable.

    Raises as `carry_states`.
    """
    manifest = _newest_manifest(sources, kind)
    if manifest is not None:
        _write_states(StatesWriter(generation, _LostModel(kind, manifest)), 0)
    return manifest is not None


def _copy_tokens(
    entry: BundleEncoder, manifest: StatesManifest, sources: Sequence[Path], generation: Path
) -> int:
    """Copies token vectors of another encoder; returns the number of passages without any.

    Raises as `carry_states`.
    """
    known = open_reusable_states(sources, manifest.fingerprint, TOKEN_VECTORS)
    writer = StatesWriter(generation, CopiedTokens(entry, manifest), known)
    _write_states(writer, 0)
    return writer.missing


def write_carried_states(
    generation: Path, model: StatesModel, known: Sequence[ReusableStates], max_computed: int
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
