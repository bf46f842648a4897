"""Whether the heads of a store work: every version is opened and run once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.errors import ArtefactError, IdentityError, NotFoundError
from winnow.heads.head import open_head
from winnow.heads.store import HeadStore


@dataclass(frozen=True, slots=True)
class Verified:
    """A version of a head, tried out."""

    id: str
    version: int
    """0 where nobody knows which version is served."""
    served: bool
    fault: str = ""
    """What is wrong with it; empty if nothing is."""


def verified(store: HeadStore, heads: Sequence[str]) -> Iterator[Verified]:
    """Tries out every version of each head, one after the other."""
    for head in heads:
        served = 0
        try:
            served = store.current(head).version
        except NotFoundError as error:
            if not store.versions(head):
                yield Verified(head, 0, False, str(error))
        except ArtefactError as error:
            yield Verified(head, 0, False, str(error))
        for version in sorted({*store.versions(head), served} - {0}):
            yield Verified(head, version, version == served, _fault(store, head, version))


def _fault(store: HeadStore, head: str, version: int) -> str:
    try:
        artefact = store.fetch(head, version)
        encoder = store.encoder()
        if encoder is not None and artefact.manifest.encoder.fingerprint != encoder.fingerprint:
            raise IdentityError(
                f"it was trained on encoder {artefact.manifest.encoder.fingerprint}, and the store "
                f"is of {encoder.fingerprint}"
            )
        open_head(artefact)
    except (ArtefactError, IdentityError, NotFoundError) as error:
        return str(error)
    return ""
