"""The archive of a node: where its shards are archived, and when."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

from winnow.content_node.archiving.journal_watch import JournalWatch
from winnow.content_node.archiving.policy import ArchivePolicy
from winnow.content_node.settings import NodeSettings
from winnow.errors import ArtefactError, UnavailableError
from winnow.journal.opening import open_journal_ends
from winnow.storage import open_storage
from winnow.storage.local import LocalStorage


@dataclass(frozen=True, slots=True)
class Archives:
    """What the archivable shards of a node share."""

    url: str
    """Directory or URL of the archive."""
    policy: ArchivePolicy
    restores: asyncio.Semaphore
    """Held while a shard is restored. It limits the restores at the same time."""
    _: KW_ONLY
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a shard is archived: copies share the disk and the network."""
    watch: JournalWatch | None = None
    """Watches the journals of archived shards; None for a node without a journal."""

    @classmethod
    def of(cls, settings: NodeSettings) -> Self | None:
        """Returns the archive that the settings name; None if they name none.

        Raises ArtefactError if no archive can be at the URL, or its directory has the shards or is
        among them. A directory may be missing. Nothing is read from a store, which may be
        unreachable now.
        """
        if not settings.archive_url:
            return None
        _check_url(settings.archive_url, _directories(settings))
        limit = asyncio.Semaphore(settings.archive_restores)
        journal = settings.journal
        watch = JournalWatch(partial(open_journal_ends, journal)) if journal else None
        policy = ArchivePolicy(settings.archive_after)
        return cls(settings.archive_url, policy, limit, watch=watch)


def _directories(settings: NodeSettings) -> Iterator[Path]:
    """Yields the directories whose content the node replaces or deletes."""
    yield from settings.shard
    yield from filter(None, (settings.shards, settings.data))


def _check_url(url: str, directories: Iterable[Path]) -> None:
    """Raises ArtefactError if there can be no archive at the URL of a node with `directories`."""
    try:
        storage = open_storage(url, "archived shards")
    except UnavailableError as error:
        raise ArtefactError(f"{error}: correct --archive-url, or install the package") from error
    if not isinstance(storage, LocalStorage):
        return
    archive = Path(storage.name)
    if archive.is_file():
        raise ArtefactError(f"{url} is a file: name a directory or a URL by --archive-url")
    for directory in directories:
        nested = archive.resolve().is_relative_to(directory.resolve())
        if nested or directory.resolve().is_relative_to(archive.resolve()):
            raise ArtefactError(
                f"the archive {url} {'is in' if nested else 'contains'} {directory}, the directory "
                "of shards: name another directory by --archive-url"
            )
