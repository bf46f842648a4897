"""Encoding several texts in one run, as a `TextEncoder`.

For processors that are idle with one text at a time, such as GPUs. A text's vector and states may
then differ in their last bits with the texts beside it, so it is for float models only: in a model
quantised dynamically all texts of a run share the scales of their activations, and differ visibly.
`winnow.policy.batching` says what goes into a run; clients take turns, as everywhere.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.errors import ArtefactError
from winnow.inference.encoder import Encoder
from winnow.inference.fair_threads import fail, succeed, tell
from winnow.inference.local import lengths_to_warm_up, placeholder_tokens
from winnow.inference.runtime import INT8
from winnow.policy.batching import BatchLimits, EncoderBatch
from winnow.policy.fair_queue import FairQueue
from winnow.text.encoder import OnEncoded, TextEncoding

_SPECIAL = 2


@dataclass(eq=False, slots=True)
class _Text:
    """A text that waits for its run."""

    ids: tuple[int, ...]
    done: "asyncio.Future[TextEncoding]"
    loop: asyncio.AbstractEventLoop
    came: float

    @property
    def tokens(self) -> int:
        return len(self.ids) + _SPECIAL


def check_can_batch(texts: int, precision: str) -> None:
    """Raises ArtefactError if a model stored in `precision` must not run `texts` at once."""
    if texts > 1 and precision == INT8:
        raise ArtefactError(
            f"{texts} texts a run need a float model: in an int8 model, the encoding of a text "
            "would depend on the texts beside it; serve a float bundle, or one text a run"
        )


class BatchingTextEncoder:
    """Runs a question encoder on the texts that wait, several at once."""

    def __init__(
        self,
        encoder: Encoder,
        limits: BatchLimits,
        threads: int = 1,
        clock: Clock = time.perf_counter,
    ) -> None:
        """`threads`: runs at once; one is best where the model runs on a GPU."""
        self._encoder, self._limits, self._clock = encoder, limits, clock
        self._queue = FairQueue[_Text]()
        self._changed = threading.Condition()
        self._filling = threading.Lock()
        """Held by the thread that fills a run, or two runs would share the texts that arrive."""
        self._left_over: _Text | None = None
        """A text without room in the last run; it begins the next one."""
        self._closed = False
        self._awaited: set[_Text] = set()
        self._threads = [
            threading.Thread(target=self._work, name=f"encode_{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        """Encodes a text together with others that wait; a cancelled text is left out."""
        loop = asyncio.get_running_loop()
        text = _Text(tuple(ids), loop.create_future(), loop, self._clock())
        self._awaited.add(text)
        with self._changed:
            self._queue.add(client, text)
            self._changed.notify_all()
        try:
            return await text.done
        finally:
            self._awaited.discard(text)
            with self._changed:
                self._queue.remove(client, text)

    async def warm_up(self, longest: int) -> None:
        """Encodes at several lengths up to `longest` tokens, alone and in full runs."""
        for length in lengths_to_warm_up(longest):
            await self.encode(placeholder_tokens(length))
            await asyncio.gather(
                *map(self.encode, [placeholder_tokens(length)] * self._limits.texts)
            )

    def close(self) -> None:
        """Cancels the texts that wait, and waits for the threads to end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        for text in list(self._awaited):
            tell(text.loop, text.done.cancel)

    def _work(self) -> None:
        while (texts := self._next()) is not None:
            self._run([text for text in texts if not text.done.done()])
            del texts  # or the last run is kept in memory while no text arrives

    def _next(self) -> list[_Text] | None:
        """The texts of the next run; None at the end."""
        with self._filling, self._changed:
            while not self._closed:
                if (first := self._take()) is not None:
                    return self._filled(first)
                self._changed.wait()
            return None

    def _take(self) -> _Text | None:
        if (left := self._left_over) is not None:
            self._left_over = None
            return left
        taken = self._queue.take()
        return taken[1] if taken else None

    def _filled(self, first: _Text) -> list[_Text]:
        """A run that begins with `first`, after waiting for others."""
        batch, texts = EncoderBatch(self._limits), [first]
        batch.add(first.tokens)
        while not self._closed:
            while (text := self._take()) is not None:
                if not batch.has_room_for(text.tokens):
                    self._left_over = text
                    return texts
                batch.add(text.tokens)
                texts.append(text)
            patience = batch.remaining_wait(self._clock() - first.came)
            if not patience or not self._changed.wait(patience):
                break
        return texts

    def _run(self, texts: Sequence[_Text]) -> None:
        if not texts:
            return
        began = self._clock()
        try:
            found = self._encoder.many([text.ids for text in texts])
        except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
            for text in texts:
                tell(text.loop, fail, text.done, error)
            return
        took = self._clock() - began
        for text, (vector, states) in zip(texts, found, strict=True):
            encoding = TextEncoding(vector, states, began - text.came, took)
            tell(text.loop, succeed, text.done, encoding)
