"""The retrieval task: a question's vector moves towards its passage and away from other passages.

Each passage of a batch is a negative for the batch's other questions (in-batch negatives, Karpukhin
et al. 2020, section 3.2). Passages of one article go into the same batch, because the pretrained
encoder confuses them most. Passages that happen to contain the answer are left out of the
comparison.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import cross_entropy

from models.data import Passage, normalise
from models.mining.mine import TrainingQuestion
from models.network.architecture import Encoder
from models.training.examples import MAX_QUESTION, MAX_TITLE
from models.training.loop import StepLosses, autocast
from models.training.order import neighbours

_MASKED = -1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingPlan:
    """Settings of the training of an encoder."""

    passes: dict[str, float]
    """Passes over the passages of each source."""
    passages: int = 32
    """Passages a step."""
    together: int = 16
    """Passages of one article that are seen in one step."""
    questions: int = 5
    """Most questions of one passage in a step."""
    hard: float = 0.5
    """Share of the questions, where the article has no other passage, that bring one the retriever
    took for theirs.
    """
    tokens: int = 128
    """Longest passage; questions that are answered further on are left out."""
    scale: float = 20.0
    """Inverse temperature of the softmax over cosines, as all-MiniLM-L6-v2 was trained."""


class EncodingTask:
    """The encoder's objective over mined questions."""

    def __init__(
        self,
        *,
        encoder: Encoder,
        tokenizer: Tokenizer,
        passages: Sequence[Passage],
        asked: Sequence[TrainingQuestion],
        plan: EncodingPlan,
        seed: int,
    ) -> None:
        self.network, self._plan, self._seed = encoder, plan, seed
        self._tokenizer, self._passages = tokenizer, passages
        self._words: dict[int, str] = {}
        self._asked = self._within_reach(asked)
        numbers = sorted(self._asked)
        sources = [self._asked[n][0].source for n in numbers]
        articles = [passages[n].title for n in numbers]
        self._articles: dict[str, int] = defaultdict(int)
        for article in articles:
            self._articles[article] += 1
        groups = neighbours(sources, articles, plan.passes, plan.together, plan.passages, seed)
        self.order = [[numbers[place] for place in group] for group in groups]

    @property
    def steps(self) -> int:
        return len(self.order)

    @property
    def plan(self) -> dict[str, Any]:
        return asdict(self._plan)

    def parts(self, step: int) -> Iterator[StepLosses]:
        """Yields the retrieval loss of the questions of `step`."""
        yield self._learn(step)  # texts are compared with each other: there are no parts

    def _learn(self, step: int) -> StepLosses:
        generator = random.Random(f"{self._seed}/{step}")
        asked = [
            question
            for number in self.order[step]
            for question in _some(self._asked[number], self._plan.questions, generator)
        ]
        hard = [n for question in asked for n in self._mistaken(question, generator)]
        numbers = list(dict.fromkeys([*self.order[step], *hard]))
        place = {number: column for column, number in enumerate(numbers)}
        with autocast("cpu"):
            passages = self.network(*_padded([self._passage(n) for n in numbers]))
            questions = self.network(*_padded([self._question(q.question) for q in asked]))
        scores = questions.float() @ passages.float().T * self._plan.scale
        scores = scores.masked_fill(self._answered_elsewhere(asked, numbers), _MASKED)
        target = torch.tensor([place[question.positive] for question in asked])
        return StepLosses({"retrieval": cross_entropy(scores, target)}, len(numbers))

    def _within_reach(self, asked: Sequence[TrainingQuestion]) -> dict[int, list[TrainingQuestion]]:
        """Returns questions by passage, without those whose answer is cut off."""
        found = defaultdict(list)
        for question in asked:
            found[question.positive].append(question)
        reach = {number: self._reach(self._passages[number]) for number in found}
        kept = {
            number: [q for q in questions if q.answer_start + len(q.answer) <= reach[number]]
            for number, questions in found.items()
        }
        return {number: questions for number, questions in kept.items() if questions}

    def _reach(self, passage: Passage) -> int:
        """Returns characters of the text that fit."""
        offsets = self._tokenizer.encode(passage.text, add_special_tokens=False).offsets
        room = self._plan.tokens - len(self._title(passage)) - 3
        return int(offsets[: max(room, 1)][-1][1]) if offsets else 0

    def _mistaken(self, question: TrainingQuestion, generator: random.Random) -> list[int]:
        alone = self._articles[self._passages[question.positive].title] < self._plan.together
        if not question.negatives or not alone or generator.random() >= self._plan.hard:
            return []
        return [generator.choice(question.negatives)]

    def _answered_elsewhere(
        self, asked: Sequence[TrainingQuestion], numbers: Sequence[int]
    ) -> Tensor:
        answers = [f" {normalise(question.answer)} " for question in asked]
        return torch.tensor(
            [
                [number != question.positive and answer in self._text(number) for number in numbers]
                for question, answer in zip(asked, answers, strict=True)
            ]
        )

    def _text(self, number: int) -> str:
        if number not in self._words:
            passage = self._passages[number]
            self._words[number] = f" {normalise(f'{passage.title} {passage.text}')} "
        return self._words[number]

    def _title(self, passage: Passage) -> list[int]:
        return self._ids(passage.title)[:MAX_TITLE]

    def _passage(self, number: int) -> list[int]:
        passage, separator = self._passages[number], self._special("[SEP]")
        head = [self._special("[CLS]"), *self._title(passage), separator]
        room = self._plan.tokens - len(head) - 1
        return [*head, *self._ids(passage.text)[:room], separator]

    def _question(self, text: str) -> list[int]:
        ids = self._ids(text)[:MAX_QUESTION]
        return [self._special("[CLS]"), *ids, self._special("[SEP]")]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _special(self, token: str) -> int:
        return int(self._tokenizer.token_to_id(token) or 0)


def _some(
    questions: Sequence[TrainingQuestion], most: int, generator: random.Random
) -> list[TrainingQuestion]:
    return generator.sample(questions, min(most, len(questions)))


def _padded(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, mask and token types (all 0), int64 [sequences, tokens]."""
    width = max(map(len, sequences))
    ids = torch.zeros(len(sequences), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
        mask[row, : len(sequence)] = 1
    return ids, mask, torch.zeros_like(ids)
