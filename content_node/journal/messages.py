"""Converts writes to journal entries and back.

An entry is a `WriteRequest` message for one shard, small enough for the journal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from winnow.convert.shard_feed import writes_of_messages, writes_to_messages
from winnow.domain.write import Write
from winnow.errors import invalid_field
from winnow.v1.shard_feed_pb2 import WriteRequest

_MAX_FRAME_BYTES = 16
"""Maximum number of bytes that a message needs for a write, in addition to the write."""


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What an entry of the journal says."""

    writes: list[Write]
    is_split: bool = False
    """Whether the halves of this shard take all later writes."""


@dataclass(frozen=True, slots=True)
class JournalMessages:
    """Converts the writes of one journal to entries and back.

    The parts of a shard that was split share its journal.
    """

    index_id: str
    shard: int
    """Number of the shard as it was built, which names the journal."""
    part: int
    """Number of the served shard: that shard, or a part of it."""
    encoding_fingerprint: str

    def encode(self, writes: Sequence[Write], max_bytes: int) -> Iterator[bytes]:
        """Encodes writes in their order, in entries of at most `max_bytes` bytes.

        Raises InvalidRequestError if a write is larger than an entry may be.
        """
        request = self._empty_request()
        max_writes_bytes = max_bytes - request.ByteSize()
        writes_bytes = 0
        for index, write in enumerate(writes_to_messages(writes)):
            size = write.ByteSize() + _MAX_FRAME_BYTES
            if size > max_writes_bytes:
                raise invalid_field(
                    f"writes[{index}]",
                    f"it has {size} bytes, but a journal entry takes {max_writes_bytes}",
                )
            if writes_bytes + size > max_writes_bytes:
                yield request.SerializeToString()
                request, writes_bytes = self._empty_request(), 0
            request.writes.append(write)
            writes_bytes += size
        if request.writes:
            yield request.SerializeToString()

    def empty_entry(self) -> bytes:
        """Encodes an entry without writes; applying it proves that earlier entries are applied."""
        return self._empty_request().SerializeToString()

    def split_entry(self) -> bytes:
        """Encodes the entry after which the halves of the served shard take all writes."""
        request = self._empty_request()
        request.split_shard = self.part
        return request.SerializeToString()

    def decode(self, content: bytes) -> JournalContent:
        """Decodes an entry.

        Raises InvalidRequestError if the entry is not a `WriteRequest`, or is for another shard or
        encoder.
        """
        try:
            request = WriteRequest.FromString(content)
        except DecodeError as error:
            raise invalid_field("entry", f"it is not a WriteRequest message: {error}") from error
        own = (self.index_id, self.shard, self.encoding_fingerprint)
        if (request.index_id, request.shard, request.encoding_fingerprint) != own:
            raise invalid_field(
                "entry",
                f"it is for shard {request.shard} of index {request.index_id}, encoded by "
                f"{request.encoding_fingerprint}; this is shard {self.shard} of index "
                f"{self.index_id}, encoded by {self.encoding_fingerprint}",
            )
        is_split = request.HasField("split_shard") and request.split_shard == self.part
        return JournalContent(list(writes_of_messages(request.writes)), is_split)

    def _empty_request(self) -> WriteRequest:
        return WriteRequest(
            index_id=self.index_id, shard=self.shard, encoding_fingerprint=self.encoding_fingerprint
        )
