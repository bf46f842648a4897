"""Compares the documents of a folder with those of an index. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from winnow.domain.listing import StoredDocument


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """Names of documents by what a sync does with them, each sorted."""

    added: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]

    def without(self, names: Collection[str]) -> "SyncPlan":
        """Returns the plan without documents that could not be converted."""

        def others(documents: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(each for each in documents if each not in names)

        return replace(self, added=others(self.added), replaced=others(self.replaced))


def compare(
    folder: Mapping[str, str],
    indexed: Iterable[StoredDocument],
    *,
    unknown: Collection[str] = (),
    uploaded: Collection[str] = (),
) -> SyncPlan:
    """Plans how the index gets the documents of the folder.

    Args:
        folder: digests by name.
        indexed: the documents of the index.
        unknown: files and directories that could not be read: their documents are not removed.
        uploaded: documents of the index that users uploaded, which are not removed either.

    """

    def is_gone(name: str) -> bool:
        is_unknown = any(name == each or name.startswith(f"{each}/") for each in unknown)
        return not is_unknown and name not in uploaded

    by_name = {each.name: each for each in indexed}
    known = sorted(folder.keys() & by_name.keys())
    return SyncPlan(
        added=tuple(sorted(folder.keys() - by_name.keys())),
        replaced=tuple(each for each in known if not _is_copy(by_name[each], folder[each])),
        removed=tuple(sorted(filter(is_gone, by_name.keys() - folder.keys()))),
        unchanged=tuple(each for each in known if _is_copy(by_name[each], folder[each])),
    )


def _is_copy(document: StoredDocument, digest: str) -> bool:
    """Whether the index has all passages of the document with this digest, and no others."""
    return document.hash == digest and document.passages == document.expected
