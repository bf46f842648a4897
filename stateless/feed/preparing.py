"""Fed passages to what is stored: tokenised, compared with what shards have, and encoded if new.

Knows the encoder and who knows what is unchanged; does not know how anything is stored.
"""

from collections.abc import Collection, Iterator, Sequence

from winnow.deadline import Deadline
from winnow.domain.write import Put, WriteResult
from winnow.stateless.feed.encoding import EncodedPut, FeedEncoder, TokenisedPut
from winnow.stateless.feed.storing import Placed
from winnow.stateless.feed.unchanged import UnchangedPuts

Prepared = EncodedPut | WriteResult
"""A write that is to be stored, or what became of one that changes nothing."""


class Preparing:
    """Prepares passages for storing. Those that are there already are not encoded."""

    def __init__(self, encoder: FeedEncoder, unchanged: UnchangedPuts) -> None:
        self._encoder, self._unchanged = encoder, unchanged

    async def prepare(
        self, puts: Sequence[Put], deadline: Deadline, client: str, written: Collection[str] = ()
    ) -> list[Prepared]:
        """Each passage as it is to be stored, or its result, in their order.

        `written`: ids that earlier messages of the same stream write. They are encoded.

        Raises:
            InvalidRequestError: a text has too many tokens.

        """
        tokenised = await self._encoder.tokenise(puts, client)
        known = await self._unchanged.find(puts, deadline, written)
        new = [each for each, placed in zip(tokenised, known, strict=True) if placed is None]
        encoded = await self._encoder.encode(new, client)
        return list(_joined(tokenised, known, iter(encoded)))


def _joined(
    tokenised: Sequence[TokenisedPut],
    known: Sequence[Placed | None],
    encoded: Iterator[EncodedPut],
) -> Iterator[Prepared]:
    for each, placed in zip(tokenised, known, strict=True):
        if placed is None:
            yield next(encoded)
        else:
            outcome, position = placed
            yield WriteResult(each.put.passage.id, outcome, position, each.truncated)
