"""Answers made ready to be sent, before they are remembered or given to several.

To convert metadata takes up to half a millisecond for each KB, so it is done once for each answer
that was found, in a thread, while its question counts as being answered.
"""

from dataclasses import replace
from functools import partial

from winnow.convert import answer as convert
from winnow.domain.answered import Answered
from winnow.inference.fair_threads import FairThreads


class Packing:
    """Packs answers that take long to convert, those of several clients in turn."""

    def __init__(self, aside: FairThreads) -> None:
        """`aside`: where they are converted."""
        self._aside = aside

    async def pack(self, answered: Answered, client: str) -> Answered:
        """The same answer, packed if it takes long to convert."""
        if convert.is_quick(answered):
            return answered
        packed = await self._aside.run(client, partial(convert.packed, answered))
        return replace(answered, packed=packed)
