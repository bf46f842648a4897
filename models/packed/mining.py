"""Searches candidates for training questions, and confirms the passages that answer them."""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from models.network.architecture import Encoder, Reader
from models.packed.arrays import CLOZE, TRAINING, UNKNOWN
from models.packed.encoding import encode_questions
from models.packed.loaded import LoadedPack
from models.packed.mined import MinedQuestions
from models.packed.search import SearchDepth
from models.packed.supervision import confirm_passages

DEPTH = SearchDepth(nearest=64, by_words=64, kept=64)
WEAK_SOURCES = (
    "squadshifts-amazon_reviews",
    "squadshifts-reddit",
    "qamr-wiki-devtest",
    "squad-train-sentences",
)
"""Sources whose questions make little sense without their passage, or whose passages are sentences.
"""
_CONFIRMING = 0.7
"""Time to confirm passages, relative to the time to search them."""
_TOGETHER = 512
"""Number of questions whose passages are confirmed in one batch."""


@dataclass(frozen=True, slots=True)
class MiningYield:
    """Counts of one source's questions after mining."""

    searched: int
    """Number of questions with candidates."""
    answered: int
    """Number of questions with a passage that answers them."""
    found: float
    """Share of the answered questions whose passage is a candidate."""


def mine_candidates(
    pack: LoadedPack, encoder: Encoder, teacher: Reader, vectors: Tensor, seconds: float
) -> tuple[MinedQuestions, dict[str, MiningYield]]:
    """Returns training questions with their passages and candidates, and the yield of each source.

    Questions with a known answer span come first, because time may not suffice for all questions.
    """
    deadline = time.monotonic() + seconds
    questions, gold = pack.questions[TRAINING], pack.gold(TRAINING)
    spans = torch.from_numpy(pack.packed_questions[TRAINING].spans).to(pack.device).long()
    order = torch.randperm(len(gold), generator=torch.Generator().manual_seed(1)).to(pack.device)
    order = order[(spans[order, 0] == UNKNOWN).int().argsort(dim=0, stable=True)]
    question_vectors = encode_questions(encoder.body, questions, order)
    index = pack.index("mined", vectors)
    candidates = pack.search(index, questions, (order, question_vectors), DEPTH, deadline)
    numbers = order[: len(candidates.rows)]
    gold, spans = gold[numbers], spans[numbers]
    deadline += _CONFIRMING * seconds
    for part in torch.split((spans[:, 0] == UNKNOWN).nonzero().squeeze(1), _TOGETHER):
        if time.monotonic() > deadline:
            gold[part] = UNKNOWN
            continue
        # a cloze question's own passage is the last resort
        own = gold[part][:, None]
        others = torch.where(candidates.rows[part] == own, UNKNOWN, candidates.rows[part])
        rows = torch.cat([others, own], 1)
        gold[part], spans[part] = confirm_passages(
            teacher, pack.passages, questions, (numbers[part], rows)
        )
    known = gold >= 0
    mined = MinedQuestions.from_candidates(
        pack.passages,
        questions,
        (numbers[known], gold[known], spans[known]),
        candidates.take(known),
    )
    return mined, _yields(pack, numbers, mined)


def search_again(
    pack: LoadedPack, encoder: Encoder, vectors: Tensor, mined: MinedQuestions, seconds: float
) -> MinedQuestions:
    """Returns as many questions as time allows, with the candidates of another encoder."""
    deadline = time.monotonic() + seconds
    questions = pack.questions[TRAINING]
    mined = mined.take(torch.randperm(len(mined), device=pack.device))
    question_vectors = encode_questions(encoder.body, questions, mined.numbers)
    index = pack.index("mined", vectors)
    candidates = pack.search(index, questions, (mined.numbers, question_vectors), DEPTH, deadline)
    kept = mined.take(torch.arange(len(candidates.rows), device=pack.device))
    return MinedQuestions.from_candidates(
        pack.passages, questions, (kept.numbers, kept.gold, kept.spans), candidates
    )


def split_held_out(
    pack: LoadedPack, mined: MinedQuestions
) -> tuple[MinedQuestions, MinedQuestions]:
    """Returns the questions for training and the held-out questions."""
    is_held_out = torch.from_numpy(pack.packed_passages.held_out).to(pack.device)[mined.gold]
    return mined.take(~is_held_out), mined.take(is_held_out)


def without_weak_sources(pack: LoadedPack, mined: MinedQuestions, cloze: float) -> MinedQuestions:
    """Leaves out weak sources, and all but a share `cloze` of cloze questions."""
    kept = dict.fromkeys(WEAK_SOURCES, 0.0) | {CLOZE: cloze}
    shares = pack.shares(mined.numbers, kept)
    return mined.take(torch.rand(len(shares), device=pack.device) < shares)


def _yields(pack: LoadedPack, numbers: Tensor, mined: MinedQuestions) -> dict[str, MiningYield]:
    searched, answered = pack.source_numbers(numbers), pack.source_numbers(mined.numbers)
    has_gold = (mined.candidates == mined.gold[:, None]).any(1).float()
    return {
        name: MiningYield(
            int((searched == place).sum()),
            int((answered == place).sum()),
            round(float(has_gold[answered == place].mean()), 3),
        )
        for place, name in enumerate(pack.source_names)
        if (answered == place).any()
    }
