"""Which passages need not be written, told by their digests before anybody encodes them.

Judges as a write would be judged at this moment. Digests of stored passages are computed when they
are asked for: a base of any format has what that takes.
"""

from collections.abc import Iterator, Sequence

from winnow.content_node.live.state import LiveState
from winnow.content_node.live.versions import StoredVersion, outcome_of_put
from winnow.domain.write import Outcome, Written
from winnow.passages.canonical import PassageDigest, digest


def find_unchanged(state: LiveState, puts: Sequence[PassageDigest]) -> list[Written | None]:
    """What becomes of each put if it changes nothing; None if it would be stored."""
    return list(_found(state, puts))


def _found(state: LiveState, puts: Sequence[PassageDigest]) -> Iterator[Written | None]:
    known = state.known({put.id for put in puts})
    for put in puts:
        before = known[put.id]
        outcome = outcome_of_put(before, put.version, _same(state, before, put.digest))
        yield (
            None
            if outcome is Outcome.STORED
            else Written(outcome, state.sequence, state.view.log_id)
        )


def _same(state: LiveState, known: StoredVersion | None, wanted: bytes) -> bool:
    if known is None or known.row is None:
        return False
    return digest(state.view.load(known.row).passage) == wanted
