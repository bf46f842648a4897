"""Entries of a journal: `WriteRequest` messages of one shard, each small enough for the journal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from winnow.convert.shard_feed import writes_of_messages, writes_to_messages
from winnow.domain.write import Write
from winnow.errors import InvalidRequestError, Violation
from winnow.v1.shard_feed_pb2 import WriteRequest

_FRAME = 16
"""Bytes around a write in a message, at most."""


@dataclass(frozen=True, slots=True)
class JournalMessages:
    """Writes to entries and back, for one shard."""

    index_id: str
    shard: int
    encoding_fingerprint: str

    def encoded(self, writes: Sequence[Write], most_bytes: int) -> Iterator[bytes]:
        """Writes in their order as entries. Raises InvalidRequestError if a write is larger than an
        entry may be.
        """
        request = self._empty()
        room = most_bytes - request.ByteSize()
        used = 0
        for place, write in enumerate(writes_to_messages(writes)):
            needed = write.ByteSize() + _FRAME
            if needed > room:
                raise InvalidRequestError(
                    Violation(
                        f"writes[{place}]", f"it has {needed} bytes, the journal takes {room}"
                    )
                )
            if used + needed > room:
                yield request.SerializeToString()
                request, used = self._empty(), 0
            request.writes.append(write)
            used += needed
        if request.writes:
            yield request.SerializeToString()

    def nothing(self) -> bytes:
        """An entry without writes: a replica that has applied it has applied all earlier ones."""
        return self._empty().SerializeToString()

    def decoded(self, content: bytes) -> list[Write]:
        """The writes of an entry. Raises InvalidRequestError if it is no such message, or holds
        those of another shard or encoder.
        """
        try:
            request = WriteRequest.FromString(content)
        except DecodeError as error:
            raise InvalidRequestError(Violation("entry", f"it is no message: {error}")) from error
        own = (self.index_id, self.shard, self.encoding_fingerprint)
        if (request.index_id, request.shard, request.encoding_fingerprint) != own:
            raise InvalidRequestError(
                Violation(
                    "entry",
                    f"it is for shard {request.shard} of index {request.index_id}, encoded by "
                    f"{request.encoding_fingerprint}",
                )
            )
        return list(writes_of_messages(request.writes))

    def _empty(self) -> WriteRequest:
        return WriteRequest(
            index_id=self.index_id, shard=self.shard, encoding_fingerprint=self.encoding_fingerprint
        )
