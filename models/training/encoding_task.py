"""Trains an encoder to move a question's vector towards its passage and away from other passages.

Each passage of a batch is a negative for the other questions of the batch (in-batch negatives,
Karpukhin et al. 2020, section 3.2). Passages of one article go into the same batch, because the
pretrained encoder confuses them most. Passages that contain the answer are not used as negatives.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import cross_entropy

from models.data import Passage
from models.mining.mine import TrainingQuestion
from models.network.architecture import Encoder
from models.training.examples import MAX_QUESTION_TOKENS, MAX_TITLE_TOKENS
from models.training.loop import StepLosses, autocast
from models.training.order import article_batches
from winnow.text.scores import normalise

_MASKED = -1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingPlan:
    """Training settings of an encoder. Field names are keys in checkpoints."""

    passes: dict[str, float]
    """Passes over the passages of each source."""
    passages: int = 32
    """Passages per step."""
    together: int = 16
    """Maximum number of passages of one article per step."""
    questions: int = 5
    """Maximum number of questions of one passage per step."""
    hard: float = 0.5
    """Share of questions with a hard negative, among questions whose article has few passages."""
    tokens: int = 128
    """Longest passage, in tokens. Questions with an answer beyond this limit are left out."""
    scale: float = 20.0
    """Inverse temperature of the softmax over cosines, as all-MiniLM-L6-v2 was trained."""


class EncodingTask:
    """Training task of the encoder, over mined questions."""

    def __init__(
        self,
        *,
        encoder: Encoder,
        tokenizer: Tokenizer,
        passages: Sequence[Passage],
        questions: Sequence[TrainingQuestion],
        plan: EncodingPlan,
        seed: int,
    ) -> None:
        self.network, self._plan, self._seed = encoder, plan, seed
        self._tokenizer, self._passages = tokenizer, passages
        self._normalised: dict[int, str] = {}
        """Normalised text by passage."""
        self._questions = self._answerable_by_passage(questions)
        """Questions by passage."""
        numbers = sorted(self._questions)
        sources = [self._questions[n][0].source for n in numbers]
        articles = [passages[n].title for n in numbers]
        self._article_sizes = Counter(articles)
        groups = article_batches(sources, articles, plan.passes, plan.together, plan.passages, seed)
        self.order = [[numbers[index] for index in group] for group in groups]

    @property
    def steps(self) -> int:
        return len(self.order)

    @property
    def settings_of_result(self) -> dict[str, Any]:
        return asdict(self._plan)

    def partial_losses(self, step: int) -> Iterator[StepLosses]:
        """Yields the retrieval loss of the questions of `step`."""
        yield self._step_losses(step)  # a step is one part, as all its texts are compared

    def _step_losses(self, step: int) -> StepLosses:
        generator = random.Random(f"{self._seed}/{step}")
        asked: list[TrainingQuestion] = []
        for number in self.order[step]:
            own = self._questions[number]
            asked += generator.sample(own, min(self._plan.questions, len(own)))
        hard = [n for question in asked for n in self._hard_negatives(question, generator)]
        numbers = list(dict.fromkeys([*self.order[step], *hard]))
        columns = {number: column for column, number in enumerate(numbers)}
        with autocast("cpu"):
            passages = self.network(*_pad([self._passage_ids(n) for n in numbers]))
            questions = self.network(*_pad([self._question_ids(q.question) for q in asked]))
        scores = questions.float() @ passages.float().T * self._plan.scale
        scores = scores.masked_fill(self._also_answers_mask(asked, numbers), _MASKED)
        target = torch.tensor([columns[question.positive] for question in asked])
        return StepLosses({"retrieval": cross_entropy(scores, target)}, len(numbers))

    def _answerable_by_passage(
        self, questions: Sequence[TrainingQuestion]
    ) -> dict[int, list[TrainingQuestion]]:
        """Returns questions by passage, without the questions whose answer is truncated."""
        by_passage = defaultdict(list)
        for question in questions:
            by_passage[question.positive].append(question)
        answerable = {}
        for number, own in by_passage.items():
            end = self._truncated_length(self._passages[number])
            if fitting := [q for q in own if q.answer_start + len(q.answer) <= end]:
                answerable[number] = fitting
        return answerable

    def _truncated_length(self, passage: Passage) -> int:
        """Returns the number of characters of the text that fit into the sequence."""
        offsets = self._tokenizer.encode(passage.text, add_special_tokens=False).offsets
        room = self._plan.tokens - len(self._title_ids(passage)) - 3
        return int(offsets[: max(room, 1)][-1][1]) if offsets else 0

    def _hard_negatives(self, question: TrainingQuestion, generator: random.Random) -> list[int]:
        """Returns a random mined negative in a list, or an empty list."""
        title = self._passages[question.positive].title
        is_small = self._article_sizes[title] < self._plan.together
        if not question.negatives or not is_small or generator.random() >= self._plan.hard:
            return []
        return [generator.choice(question.negatives)]

    def _also_answers_mask(
        self, asked: Sequence[TrainingQuestion], numbers: Sequence[int]
    ) -> Tensor:
        """Returns whether passages have the answer, bool [questions, passages].

        The value of a question's positive is false.
        """
        answers = [f" {normalise(question.answer)} " for question in asked]
        return torch.tensor(
            [
                [
                    number != question.positive and answer in self._normalised_text(number)
                    for number in numbers
                ]
                for question, answer in zip(asked, answers, strict=True)
            ]
        )

    def _normalised_text(self, number: int) -> str:
        if number not in self._normalised:
            passage = self._passages[number]
            self._normalised[number] = f" {normalise(f'{passage.title} {passage.text}')} "
        return self._normalised[number]

    def _title_ids(self, passage: Passage) -> list[int]:
        return self._ids(passage.title)[:MAX_TITLE_TOKENS]

    def _passage_ids(self, number: int) -> list[int]:
        passage, separator = self._passages[number], self._special_id("[SEP]")
        head = [self._special_id("[CLS]"), *self._title_ids(passage), separator]
        room = self._plan.tokens - len(head) - 1
        return [*head, *self._ids(passage.text)[:room], separator]

    def _question_ids(self, text: str) -> list[int]:
        ids = self._ids(text)[:MAX_QUESTION_TOKENS]
        return [self._special_id("[CLS]"), *ids, self._special_id("[SEP]")]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _special_id(self, token: str) -> int:
        return int(self._tokenizer.token_to_id(token) or 0)


def _pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ids, mask and token types (all 0), int64 [sequences, tokens]."""
    width = max(map(len, sequences))
    ids = torch.zeros(len(sequences), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
        mask[row, : len(sequence)] = 1
    return ids, mask, torch.zeros_like(ids)
