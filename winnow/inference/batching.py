"""A `TextEncoder` that encodes several texts in one run.

Batching is for processors that one text at a time leaves idle, such as GPUs. The last bits of a
text's vector and states may depend on the other texts of the run. Only float models can batch: in a
dynamically quantised model the texts of a run share activation scales, so the results would differ
visibly. `winnow.policy.batching` decides which texts are in a run; clients take turns.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from winnow.errors import ArtefactError
from winnow.inference.encoder import Encoder
from winnow.inference.fair_threads import call_on_event_loop, fail, succeed
from winnow.inference.local import lengths_to_warm_up, placeholder_tokens
from winnow.inference.runtime import INT8
from winnow.policy.batching import BatchLimits, EncoderBatch
from winnow.policy.fair_queue import FairQueue
from winnow.text.encoder import SPECIAL_TOKENS, OnEncoded, TextEncoding


@dataclass(eq=False, slots=True)
class _Text:
    """A text that waits for its run."""

    ids: tuple[int, ...]
    done: "asyncio.Future[TextEncoding]"
    loop: asyncio.AbstractEventLoop
    arrived: float

    @property
    def tokens(self) -> int:
        return len(self.ids) + SPECIAL_TOKENS


def check_can_batch(texts: int, precision: str) -> None:
    """Raises ArtefactError if a model stored in `precision` must not run `texts` texts at once."""
    if texts > 1 and precision == INT8:
        raise ArtefactError(
            f"{texts} texts per run need a float model: in an int8 model the encoding of a text "
            "would depend on the other texts; serve a float bundle, or set one text per run"
        )


class BatchingTextEncoder:
    """Runs a question encoder on waiting texts, several per run."""

    def __init__(
        self,
        encoder: Encoder,
        limits: BatchLimits,
        threads: int = 1,
    ) -> None:
        """`threads`: maximum number of concurrent runs; one is best for a GPU."""
        self._encoder, self._limits = encoder, limits
        self._queue = FairQueue[_Text]()
        self._changed = threading.Condition()
        self._filling = threading.Lock()
        """Held by the thread that fills a run, so that threads do not split the waiting texts."""
        self._postponed: _Text | None = None
        """A text that did not fit into the last run, and begins the next one."""
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
        """Encodes a text together with other waiting texts. Cancelling removes the text."""
        loop = asyncio.get_running_loop()
        text = _Text(tuple(ids), loop.create_future(), loop, time.perf_counter())
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
        """Encodes made-up texts of up to `longest` tokens, one per run and in full runs."""
        for length in lengths_to_warm_up(longest):
            await self.encode(placeholder_tokens(length))
            await asyncio.gather(
                *map(self.encode, [placeholder_tokens(length)] * self._limits.texts)
            )

    def close(self) -> None:
        """Waits for running texts, and cancels waiting ones."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        for text in list(self._awaited):
            call_on_event_loop(text.loop, text.done.cancel)

    def _work(self) -> None:
        while (texts := self._next_run()) is not None:
            self._run([text for text in texts if not text.done.done()])
            del texts  # otherwise the last run stays in memory while no text arrives

    def _next_run(self) -> list[_Text] | None:
        """Waits for the texts of the next run; returns None once the encoder is closed."""
        with self._filling, self._changed:
            while not self._closed:
                if (first := self._take_text()) is not None:
                    return self._fill_run(first)
                self._changed.wait()
            return None

    def _take_text(self) -> _Text | None:
        if (postponed := self._postponed) is not None:
            self._postponed = None
            return postponed
        entry = self._queue.take()
        return entry[1] if entry else None

    def _fill_run(self, first: _Text) -> list[_Text]:
        """Returns the texts of a run that begins with `first`, after waiting for others."""
        batch, texts = EncoderBatch(self._limits), [first]
        batch.add(first.tokens)
        while not self._closed:
            while (text := self._take_text()) is not None:
                if not batch.has_room_for(text.tokens):
                    self._postponed = text
                    return texts
                batch.add(text.tokens)
                texts.append(text)
            seconds = batch.remaining_wait(time.perf_counter() - first.arrived)
            if not seconds or not self._changed.wait(seconds):
                break
        return texts

    def _run(self, texts: Sequence[_Text]) -> None:
        if not texts:
            return
        began = time.perf_counter()
        try:
            encodings = self._encoder.encode_batch([text.ids for text in texts])
        except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
            for text in texts:
                call_on_event_loop(text.loop, fail, text.done, error)
            return
        took = time.perf_counter() - began
        for text, done in zip(texts, encodings, strict=True):
            encoding = TextEncoding(
                done.vector, done.states, began - text.arrived, took, tokens=done.tokens
            )
            call_on_event_loop(text.loop, succeed, text.done, encoding)
