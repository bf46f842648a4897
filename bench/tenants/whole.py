"""Asks whole questions with the models of a bundle: encodes, retrieves, and reads passages.

All of it runs in the calling thread. What a front node adds is the same for any shard, and is left
out. The passages have no precomputed states.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.figures import Figure, at_most, quantile_figures, ratio_figure
from bench.tenants.turns import take_turns
from winnow.bundle import load_bundle
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.content_node.shard.view import ShardView
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.encoder import open_question_encoder
from winnow.reading.reader import open_reader
from winnow.text.tokenizer import Tokenizer

_READ = (2, 10)
"""Numbers of passages that are read: a typical one if reading stops early, and the maximum."""
_LIMITS = {0.5: 1.1, 0.95: 1.2}
_MAX_ANSWER_TOKENS = 10
_WARM_UP = 3


class WholeQuestions:
    """The models of a bundle, and how a question is asked with them."""

    def __init__(self, bundle: Path, depth: RetrievalDepth, word_weight: float) -> None:
        loaded = load_bundle(bundle)
        special = Tokenizer(loaded.tokenizer).special
        self._encoder = open_question_encoder(loaded, special)
        self._reader = open_reader(loaded, special)
        self._depth, self._word_weight = depth, word_weight

    def figures(
        self,
        group: str,
        shared: ShardView,
        alone: dict[int, ShardView],
        asked: Sequence[tuple[int, EncodedQuestion]],
    ) -> Iterator[Figure]:
        """Asks each question of both shards, interleaved, and compares the processor times."""
        if not asked:
            return
        for number, question in asked[:_WARM_UP]:
            self._ask(alone[number], question)
        times: dict[str, list[list[float]]] = {"shared": [], "alone": []}
        for name, view, question in take_turns(shared, alone, asked):
            times[name].append(self._ask(view, question))
        for place, passages in enumerate(_READ):
            of = {name: [each[place] for each in own] for name, own in times.items()}
            what = f"question that reads {passages}"
            for name, own in of.items():
                yield from quantile_figures(group, f"{what}, {name} shard", own, *_LIMITS)
            for level, limit in _LIMITS.items():
                name = f"{what}, beside its own shard, p{level * 100:g}"
                ratio = ratio_figure(group, name, of["shared"], of["alone"], level)
                yield at_most(ratio, limit) if passages == max(_READ) else ratio

    def _ask(self, view: ShardView, question: EncodedQuestion) -> list[float]:
        """Returns the processor seconds until each of `_READ` passages are read.

        The vector of the encoder is not used: the vectors of the passages are random.
        """
        began = time.thread_time()
        self._encoder.encode_question(question.token_ids)
        own = view_of_tenant(view, question.tenant)
        hits = retrieve(own, question, self._depth, self._word_weight).hits
        seconds = []
        for read, hit in enumerate(hits[: max(_READ)], start=1):
            stored = view.load(hit.row)
            self._reader.read(question.token_ids, stored, hit, _MAX_ANSWER_TOKENS)
            if read in _READ:
                seconds.append(time.thread_time() - began)
        return seconds
