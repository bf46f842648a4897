"""Tests of training from packed tokens: sequences, search, supervision, figures and all stages."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.data import DataDirectory, Passage, Question
from models.measuring.retrieving import _index_words
from models.network.architecture import Encoder, Reader, load_body
from models.network.late_interaction import max_similarities, round_tokens
from models.network.split_reader import attend_fused, attend_plainly
from models.packed.arrays import TRAINING, load_passages, load_questions
from models.packed.encoding import encode_passages, reader_logits
from models.packed.mined import MinedQuestions
from models.packed.networks import (
    ENCODER,
    READER,
    TEACHER,
    load_encoder,
    load_projections,
    load_reader,
    load_split_reader,
    save_networks,
)
from models.packed.packing import PackPlan, write_pack
from models.packed.reader_training import split_logits
from models.packed.reading_figures import Readings, refusal_figures
from models.packed.recall import RankedSet, fit_weights, gold_recall
from models.packed.search import Candidates, ExactIndex, SearchDepth, WordMatrix
from models.packed.supervision import best_spans, match_answers
from models.packed.tokens import PassageTokens, QuestionTokens
from models.steps import packed
from models.steps.packed_reader import AFTER, BEFORE, ReaderTraining, ReaderTrainingBudget
from models.steps.split_reader import trained_split_reader
from models.steps.training import trained_encoder
from models.training.loop import Schedule
from models.training.objective import refusing_losses
from models.training.timed import train_until
from models.workspace import Workspace
from winnow.content_node.shard.words import WordIndex

CPU = torch.device("cpu")
SUBJECTS = 64
_SPLIT_LAYERS = 1


def passage(number: int) -> Passage:
    words = f"{number % 10} , word{number * 7 % 40} won in the danube in {1900 + number % 5}"
    return Passage(f"tour word{number % 40}", f"In the tour of word{number % 40} {words} .")


def question(number: int) -> Question:
    gold, answer = passage(number), f"word{number * 7 % 40}"
    return Question(
        text=f"who won the tour of word{number % 40} {number % 10} ?",
        answers=(answer,),
        source="squad",
        gold=gold,
        answer_start=gold.text.index(f", {answer}") + 2,
    )


@dataclass(frozen=True, slots=True)
class SyntheticData(DataDirectory):
    """Questions about every subject; of the last ones, the passage is unknown."""

    def development(self, name: str) -> list[Question]:
        return [question(number) for number in range(0, SUBJECTS, 8)]

    def gold(self) -> list[Question]:
        return [question(number) for number in range(SUBJECTS // 2) if number % 8]

    def extra_questions_with_gold(self) -> list[Question]:
        return []

    def pairs(self) -> list[Question]:
        return []

    def extra_questions_without_gold(self) -> list[Question]:
        return [
            Question(text=each.text, answers=each.answers, source="nq-open-train-50k")
            for each in map(question, range(SUBJECTS // 2, SUBJECTS))
        ]

    def wikipedia(self, keep_every: int = 1) -> list[Passage]:
        return [passage(number) for number in range(SUBJECTS // 2, SUBJECTS)]


@pytest.fixture(scope="module")
def directory(tiny_weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack with tiny networks."""
    out = tmp_path_factory.mktemp("pack")
    tokenizer = Tokenizer.from_file(str(tiny_weights / "tokenizer.json"))
    assert write_pack(SyntheticData(out), tokenizer, out, PackPlan(clozes=8)) > 0
    config = json.loads((tiny_weights / "config.json").read_text())
    torch.manual_seed(0)
    states = {
        ENCODER: Encoder(load_body(tiny_weights)).state_dict(),
        TEACHER: Reader(load_body(tiny_weights)).state_dict(),
        READER: Reader(load_body(tiny_weights)).state_dict(),
    }
    save_networks(out / packed.NETWORKS, config, 0.03, states)
    return out


@pytest.fixture(scope="module")
def passages(directory: Path) -> PassageTokens:
    return PassageTokens(load_passages(directory), CPU)


@pytest.fixture(scope="module")
def questions(directory: Path) -> QuestionTokens:
    special = load_passages(directory).special
    return QuestionTokens(load_questions(directory, TRAINING), special, CPU)


def test_sequences_are_those_of_the_tokenizer(
    tiny_weights: Path, passages: PassageTokens, questions: QuestionTokens
) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_weights / "tokenizer.json"))
    first = SyntheticData(tiny_weights).wikipedia()[0]
    sequences = passages.encoder_sequences(torch.tensor([0, 1]))
    wanted = tokenizer.encode(first.title, first.text).ids
    assert sequences.ids[0, sequences.mask[0]].tolist() == wanted
    text = sequences.ids[0, sequences.text_mask[0]].tolist()
    assert text == tokenizer.encode(first.text, add_special_tokens=False).ids
    asked = questions.sequences(torch.tensor([0]))
    assert asked.ids[0, asked.mask[0]].tolist() == tokenizer.encode(question(1).text).ids


def test_a_window_leaves_out_tokens_at_both_ends(passages: PassageTokens) -> None:
    whole = passages.reader_sequences(torch.tensor([0]), 100, torch.tensor([0]))
    part = passages.reader_sequences(torch.tensor([0]), 10, torch.tensor([2]))
    text = whole.ids[0, whole.text_mask[0]].tolist()
    window = part.ids[0, part.text_mask[0]].tolist()
    assert window == text[2 : 2 + len(window)]
    assert int(part.mask.sum()) == 10


def test_words_score_as_in_a_shard(
    tiny_weights: Path, passages: PassageTokens, questions: QuestionTokens
) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_weights / "tokenizer.json"))
    stored = SyntheticData(tiny_weights).wikipedia()
    tokens, ends, rarities = _index_words(stored, tokenizer)
    words = WordIndex(tokens, ends)
    rows = torch.arange(len(stored))
    found = WordMatrix(passages, rows).scores(questions, torch.tensor([0]))[:, 0]
    ids = tokenizer.encode(question(1).text, add_special_tokens=False).ids
    wanted = words.bm25_scores(rarities.terms_of_tokens(ids), rows.tolist())
    assert found.numpy() == pytest.approx(wanted, abs=1e-4)


def test_search_orders_all_candidates_by_fused_distance(
    passages: PassageTokens, questions: QuestionTokens
) -> None:
    rows, numbers = torch.arange(20), torch.tensor([0, 3])
    vectors = torch.nn.functional.normalize(torch.randn(20, 8), dim=1)
    sought = torch.nn.functional.normalize(torch.randn(2, 8), dim=1)
    index = ExactIndex(passages, rows, vectors)
    depth = SearchDepth(nearest=20, by_words=20, kept=40)
    found = index.search(questions, numbers, sought, depth, 0.1)
    distances = (sought[:, None] - vectors).square().sum(2)
    fused = distances - 0.1 * WordMatrix(passages, rows).scores(questions, numbers).T
    assert found.rows[:, :20].tolist() == fused.argsort(dim=1, stable=True).tolist()
    assert (found.rows[:, 20:] == -1).all()  # no passage is there twice


def test_fused_attention_equals_plain_products() -> None:
    query, key, value = torch.randn(3, 2, 4, 8, 16)
    mask = torch.arange(8) < torch.tensor([[5], [8]])
    plain, fused = (f(query, key, value, mask) for f in (attend_plainly, attend_fused))
    assert torch.allclose(plain, fused, atol=1e-5)


def test_padding_between_question_and_passage_does_not_change_a_reader(
    directory: Path, passages: PassageTokens, questions: QuestionTokens
) -> None:
    rows, numbers = torch.tensor([3, 0]), torch.tensor([0, 5])
    found = passages.reader_sequences(rows, 100, torch.zeros_like(rows))
    asked = questions.sequences(numbers)
    full = load_reader(directory / packed.NETWORKS, CPU)
    split = load_split_reader(directory / packed.NETWORKS, CPU, _SPLIT_LAYERS)
    with torch.no_grad():
        for reader, logits in (
            (full, reader_logits(full, asked, found)),
            (split, split_logits(split, asked, found)),
        ):
            for row in range(2):
                question_ids = asked.ids[row, asked.mask[row]]
                passage_ids = found.ids[row, found.mask[row]]
                ids = torch.cat([question_ids, passage_ids])[None]
                types = torch.zeros_like(ids)
                types[:, len(question_ids) :] = 1
                start, _, relevance = reader(ids, torch.ones_like(ids), types)
                length = len(passage_ids)
                assert torch.allclose(start[0, -length:], logits[0][row, :length], atol=1e-4)
                assert torch.allclose(relevance[0], logits[2][row], atol=1e-4)


def test_vectors_are_those_of_the_encoder(directory: Path, passages: PassageTokens) -> None:
    encoder = load_encoder(directory / packed.NETWORKS, CPU)
    sequences = passages.encoder_sequences(torch.tensor([2]))
    ids = sequences.ids[:, sequences.mask[0]]
    with torch.no_grad():
        wanted = encoder(ids, torch.ones_like(ids), torch.zeros_like(ids))
    found = encode_passages(encoder.body, passages, torch.tensor([2, 7]))
    assert float((found[:1] * wanted).sum()) == pytest.approx(1, abs=1e-3)


def test_answers_are_found_as_whole_words(passages: PassageTokens) -> None:
    text = passages.plain(torch.tensor([0]))[0]
    inside = torch.zeros(1, 1, 12, dtype=torch.long)
    inside[0, 0, :2] = text[4:6]
    matches = match_answers(passages, torch.tensor([0]), inside)
    assert matches.contained.all()
    assert matches.is_answer(torch.tensor([4]), torch.tensor([5])).all()
    assert not matches.is_answer(torch.tensor([4]), torch.tensor([6])).any()
    passages.continues[text[6]] = True  # the word goes on
    try:
        assert not match_answers(passages, torch.tensor([0]), inside).starts[0, 0, 4]
    finally:
        passages.continues[text[6]] = False


def test_the_best_span_has_at_most_ten_tokens_and_lies_in_the_text() -> None:
    start, end = torch.zeros(1, 30), torch.zeros(1, 30)
    start[0, 0], start[0, 5], end[0, 14], end[0, 15] = 9.0, 2.0, 3.0, 8.0
    text_mask = torch.arange(30)[None] > 1
    first, last, score = best_spans(start, end, text_mask)
    assert (first.item(), last.item(), score.item()) != (5, 15, 10.0)
    assert last.item() - first.item() < 10
    assert score.item() == 8.0


def test_negatives_are_neither_gold_nor_answered() -> None:
    mined = MinedQuestions(
        numbers=torch.arange(2),
        gold=torch.tensor([7, 8]),
        spans=torch.zeros(2, 2, dtype=torch.long),
        candidates=torch.tensor([[7, 1, 2, 3], [8, 4, -1, -1]]),
        distances=torch.zeros(2, 4),
        words=torch.zeros(2, 4),
        answered=torch.tensor([[True, False, True, False], [True, True, False, False]]),
    )
    drawn = mined.draw_negatives(3, among=4)
    assert set(drawn[0].tolist()) <= {1, 3}
    assert set(drawn[1].tolist()) == {7}  # none is left, so another question's passage


def test_late_interaction_sums_the_best_token_of_every_question_token() -> None:
    asked, found = torch.randn(2, 3, 4), torch.randn(2, 5, 6, 4)
    mask = torch.rand(2, 5, 6) > 0.4
    mask[..., 0] = True
    scores = max_similarities(asked, found, mask)
    wanted = sum(
        max(float(asked[1, token] @ each) for each in found[1, 2][mask[1, 2]]) for token in range(3)
    )
    assert scores[1, 2].item() == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(("bits", "error"), [(8, 0.005), (4, 0.08)])
def test_rounded_tokens_are_near(bits: int, error: float) -> None:
    tokens = torch.randn(50, 16)
    rounded = round_tokens(tokens, bits)
    largest = tokens.abs().amax(1, keepdim=True)
    assert ((rounded - tokens).abs() / largest).max() < error
    assert len(torch.unique(rounded[0] / largest[0])) <= 2**bits - 1


def test_the_fitted_weights_put_the_gold_passage_first() -> None:
    helpful = torch.randn(40, 6)
    rows = torch.arange(6).repeat(40, 1)
    found = Candidates(rows, torch.randn(40, 6), torch.randn(40, 6))
    gold = (helpful - found.distances).argmax(1)
    asked = RankedSet(torch.arange(40), gold, found)
    features = asked.features(helpful)
    weights = fit_weights(asked, features)
    assert weights[1] < min(weights[0], weights[2])  # words say nothing here
    assert gold_recall(asked, features @ weights, (1,))[0] > 90
    assert gold_recall(asked, features[..., 1], (6,)) == [100.0]


def test_training_ends_at_its_deadline_and_learns() -> None:
    torch.manual_seed(0)
    network, values = torch.nn.Linear(4, 1), torch.randn(32, 4)
    times = iter(range(1000))
    losses: list[float] = []

    def step() -> dict[str, Tensor]:
        loss = (network(values) - values[:, :1]).square().mean()
        losses.append(loss.item())
        return {"square": loss}

    count = train_until(
        network,
        iter(lambda: step, None),
        Schedule(rate=0.1, quantised=0.0),
        deadline=200.0,
        report=lambda _: None,
        clock=lambda: float(next(times)),
    )
    assert count == len(losses)
    assert 100 < count < 200
    assert losses[-1] < losses[0] / 4


@pytest.mark.timeout(200)
def test_every_stage_leaves_its_result(directory: Path, tiny_weights: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    budget = packed.TrainingBudget(mining=5, late=0.2, encoder=0.2, mean_late=0.2)
    packed.RetrievalTraining(directory, tmp_path, "cpu", lines.append).run(budget)
    assert not [line for line in lines if "failed" in line]
    figures = json.loads((tmp_path / packed.FIGURES).read_text())
    assert figures["mined"]["squad"]["answered"] > 20
    for name in (packed.SHIPPED, packed.MEAN):
        assert len(figures[f"{name} late interaction"]) == 12  # six projections in two precisions
        projections = load_projections(tmp_path / f"late-{name}.pt")
        assert [each.project.out_features for each in projections] == [8, 16, 32, 64, 16, 32]
    assert figures[f"{packed.TRAINED} encoder"]["dev-nq large"]["distance"]
    workspace = Workspace(tmp_path)
    name = "body.encoder.layer.0.output.dense.weight"
    mean = trained_encoder(tiny_weights, workspace).state_dict()[name]
    pretrained = Encoder(load_body(tiny_weights)).state_dict()[name]
    assert not torch.equal(mean, pretrained)


@pytest.mark.timeout(200)
def test_a_reader_is_trained_and_measured(
    directory: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    training = ReaderTraining(directory, tmp_path, "cpu", _SPLIT_LAYERS, report=lines.append)
    budget = ReaderTrainingBudget(mining=5, training=0.5, share=0.75)
    training.run(Schedule(), budget)
    reader = trained_split_reader(tiny_weights, Workspace(tmp_path), _SPLIT_LAYERS)
    begun = load_split_reader(directory / packed.NETWORKS, CPU, _SPLIT_LAYERS)
    assert not torch.equal(reader.span.weight, begun.span.weight)
    figures = json.loads((tmp_path / packed.FIGURES).read_text())
    for name in (BEFORE, AFTER, packed.MEAN):
        assert figures[name]["dev-nq gold"]["questions"] == SUBJECTS // 8
        assert figures[name]["dev-nq retrieved"]["10"] <= figures[name]["dev-nq retrieved"]["limit"]


def test_refusals_keep_right_answers() -> None:
    right = torch.tensor([True, True, False])
    answered = Readings(torch.tensor([3.0, 2.0, -5.0]), torch.ones(3), right, right.float())
    wrong = torch.zeros(2, dtype=torch.bool)
    unanswered = Readings(torch.tensor([0.0, 2.5]), torch.tensor([2.0, 0.0]), wrong, wrong.float())
    figures = refusal_figures(answered, unanswered)
    assert (figures["span"], figures["relevance"]) == (50.0, 50.0)


def test_no_answer_competes_with_spans() -> None:
    """The loss of a question without an answer falls as all its logits fall, and only then."""
    mask = torch.ones(1, 2, 4, dtype=torch.bool)
    place = torch.tensor([1])

    def loss(height: float, *, is_answered: bool) -> float:
        start = torch.full((1, 2, 4), -2.0)
        start[0, 0, 1] = height
        relevance = torch.tensor([[height, -2.0]])
        losses = refusing_losses(
            (start, start, relevance), mask, place, place, torch.tensor([is_answered])
        )
        return float(sum(losses))

    assert loss(-4, is_answered=False) < loss(0, is_answered=False) < loss(4, is_answered=False)
    assert loss(4, is_answered=True) < loss(0, is_answered=True) < loss(-4, is_answered=True)
