"""Measures how often retrieval ranks the gold passage among the first candidates."""

from typing import Any

import torch
from torch import Tensor

from models.data import DEVELOPMENT
from models.network.architecture import Encoder
from models.network.late_interaction import LateInteraction
from models.packed.arrays import CLOZE, TRAINING
from models.packed.encoding import encode_questions
from models.packed.late_training import CombinedScore
from models.packed.loaded import LoadedPack
from models.packed.mined import MinedQuestions
from models.packed.mining import WEAK_SOURCES
from models.packed.recall import LateScores, RankedSet, fit_weights, gold_recall
from models.packed.search import SearchDepth

HELD_OUT = "held-out"
"""Name of the held-out training questions, on which weights are fitted."""
_DEPTH = SearchDepth(nearest=100, by_words=100, kept=200)
"""Numbers of candidates, the defaults of a front node."""
_BITS = (8, 4)
_MAX_HELD_OUT = 400
"""Maximum number of held-out questions of a source."""

Figures = dict[str, Any]


def ranked_sets(
    pack: LoadedPack, encoder: Encoder, vectors: Tensor, held_out: MinedQuestions
) -> dict[str, RankedSet]:
    """Returns the candidates of the development sets in both indexes, and of held-out questions.

    The keys are the set and the index, such as `dev-squad small`, or `HELD_OUT`.
    """
    held_out = _sample_held_out(pack, held_out)

    def ranked(name: str, index: str, numbers: Tensor, gold: Tensor) -> RankedSet:
        questions = pack.questions[name]
        question_vectors = encode_questions(encoder.body, questions, numbers)
        candidates = pack.search(
            pack.index(index, vectors), questions, (numbers, question_vectors), _DEPTH
        )
        return RankedSet(numbers, gold, candidates)

    sets = {HELD_OUT: ranked(TRAINING, "mined", held_out.numbers, held_out.gold)}
    for name in DEVELOPMENT:
        gold = pack.gold(name)
        numbers = torch.arange(len(gold), device=pack.device)
        for index in ("small", "large"):
            sets[f"{name} {index}"] = ranked(name, index, numbers, gold)
    return sets


def encoder_figures(sets: dict[str, RankedSet], word_weight: float) -> Figures:
    """Returns recall figures of rankings by distance, by words, and by fused distance.

    The fused distance weighs the score by words with `word_weight`. A second figure (`fused,
    fitted`) has weights that were fitted on held-out questions.
    """
    fitted = fit_weights(sets[HELD_OUT], sets[HELD_OUT].features())
    fixed = torch.tensor([1.0, word_weight], device=fitted.device)
    return {
        name: {
            "candidates": gold_recall(each, each.features()[..., 0], (_DEPTH.kept,)),
            "distance": gold_recall(each, each.features()[..., 0]),
            "words": gold_recall(each, each.features()[..., 1]),
            "fused": gold_recall(each, each.features() @ fixed),
            "fused, fitted": gold_recall(each, each.features() @ fitted),
        }
        for name, each in sets.items()
    } | {"weights": fitted.tolist()}


def late_figures(
    pack: LoadedPack, encoder: Encoder, network: CombinedScore, sets: dict[str, RankedSet]
) -> Figures:
    """Returns recall figures of every projection at every precision.

    The weights of nearness, words and late interaction are fitted only on held-out questions.
    """
    projections = {
        each.name: each for each in network.projections if isinstance(each, LateInteraction)
    }
    rows = torch.cat([each.candidates.rows.clamp(min=0).flatten() for each in sets.values()])
    late_scores = LateScores(projections, encoder.body, pack.passages, rows)
    figures: Figures = {}
    for name in projections:
        for bits in _BITS:
            late = {
                key: late_scores.scores(name, pack.questions[_question_set(key)], each, bits)
                for key, each in sets.items()
            }
            weights = fit_weights(sets[HELD_OUT], sets[HELD_OUT].features(late[HELD_OUT]))
            figures[f"{name}, {bits} bits"] = {
                "weights": weights.tolist(),
                **{
                    key: {
                        "late alone": gold_recall(each, late[key]),
                        "fitted": gold_recall(each, each.features(late[key]) @ weights),
                    }
                    for key, each in sets.items()
                },
            }
    return figures


def _sample_held_out(pack: LoadedPack, held_out: MinedQuestions) -> MinedQuestions:
    """Returns the first held-out questions of each source. Leaves out weak and cloze sources."""
    sources = pack.source_numbers(held_out.numbers)
    kept = torch.zeros_like(sources, dtype=torch.bool)
    for place, name in enumerate(pack.source_names):
        if name not in (*WEAK_SOURCES, CLOZE):
            of_source = sources == place
            kept |= of_source & (of_source.cumsum(0) <= _MAX_HELD_OUT)
    return held_out.take(kept)


def _question_set(key: str) -> str:
    return TRAINING if key == HELD_OUT else key.split(maxsplit=1)[0]
