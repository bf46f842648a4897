"""The archive of a node: where its shards are archived, and when."""

import asyncio
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Self

from winnow.content_node.archiving.journal_watch import JournalWatch
from winnow.content_node.archiving.policy import ArchivePolicy
from winnow.content_node.settings import NodeSettings
from winnow.journal.opening import open_journal_ends


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
        """Returns the archive that the settings name; None if they name none."""
        if not settings.archive_url:
            return None
        limit = asyncio.Semaphore(settings.archive_restores)
        journal = settings.journal
        watch = JournalWatch(partial(open_journal_ends, journal)) if journal else None
        policy = ArchivePolicy(settings.archive_after)
        return cls(settings.archive_url, policy, limit, watch=watch)
