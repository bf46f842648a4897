"""The cost of sharing the encoder: the same head, trained together with a separate encoder.

Starts from the pretrained weights that the default bundle's encoder started from. The result is
not served: sharing avoids an encoder for each head.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertModel

from models.heads.making import HeadMaker, finish
from models.heads.problem import Part, Problem, read_problem
from models.heads.record import HeadNaming, manifest_fields
from models.heads.settings import HeadJob
from models.heads.states import Encoded, batches
from models.heads.tasks import Task, task_of
from models.heads.training import Trained
from models.network.architecture import freeze_embeddings, hidden_states, load_body
from models.network.weights import open_tokenizer
from models.progress import followed
from models.training.loop import TrainingError, autocast

EPOCHS, RATE = 3, 1e-4
"""Passes over the texts, and the highest learning rate of the encoder; its head learns faster."""
_HEAD_RATE, _BATCH, _WARMUP = 2e-3, 32, 0.1
_AT_ONCE = 128


def measure_unfrozen(
    job: HeadJob, maker: HeadMaker, weights: Path, epochs: int
) -> dict[str, float]:
    """Returns accuracy of a head that was trained together with the encoder in `weights`.

    Raises:
        DataError: a file is not what it should be.
        TrainingError: the loss is not a number any more.

    """
    problem = read_problem(job, maker.bundle, maker.kept, maker.say)
    torch.manual_seed(job.plan.seed)
    body = load_body(weights)
    freeze_embeddings(body)
    texts = _Texts(open_tokenizer(weights), maker.bundle.manifest.encoder.max_question_tokens)
    task = task_of(problem, job.plan)
    _fine_tune(body, task, problem, texts, epochs, job.plan.seed)
    tuned = replace(
        problem,
        held=_encoded(body, texts, problem.held, "encode held-out texts"),
        test=problem.test and _encoded(body, texts, problem.test, "encode test texts"),
    )
    settled = task_of(tuned, job.plan)
    settled.network.load_state_dict(task.network.state_dict())
    settled.settle()
    with TemporaryDirectory() as directory:
        fields = manifest_fields(job, HeadNaming(id="unfrozen"), maker.bundle, tuned)
        trained = Trained(settled, epochs, settled.score())
        return finish(Path(directory) / "head", fields, trained, tuned, maker).accuracy


class _Texts:
    """Token ids of texts, cut where the encoder's are."""

    def __init__(self, tokenizer: Tokenizer, most: int) -> None:
        self._tokenizer, self._most = tokenizer, most

    def ids(self, part: Part) -> list[list[int]]:
        """Returns the token ids of every text, with [CLS] and [SEP]."""
        found = self._tokenizer.encode_batch([row.text for row in part.rows])
        return [
            each.ids if len(each.ids) <= self._most else [*each.ids[: self._most - 1], each.ids[-1]]
            for each in found
        ]


def _fine_tune(
    body: BertModel, task: Task, problem: Problem, texts: _Texts, epochs: int, seed: int
) -> None:
    ids = texts.ids(problem.learnt)
    lengths = np.array([len(each) for each in ids])
    chance = np.random.default_rng(seed)
    order = [
        places
        for _ in range(epochs)
        for places in batches(np.arange(len(ids)), lengths, _BATCH, chance)
    ]
    groups: list[dict[str, Any]] = [
        {"params": [each for each in body.parameters() if each.requires_grad], "most": RATE},
        {"params": list(task.network.parameters()), "most": _HEAD_RATE},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    body.train()
    task.network.train()
    for step, places in enumerate(followed(order, "train", len(order))):
        done = step / len(order)
        for group in optimiser.param_groups:
            group["lr"] = group["most"] * min(done / _WARMUP, (1 - done) / (1 - _WARMUP))
        states, mask = _states(body, [ids[int(place)] for place in places])
        loss = task.loss(states, mask, places)
        if not torch.isfinite(loss):
            raise TrainingError(f"the loss is {loss.item()} at step {step}")
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], 1.0)
        optimiser.step()


def _states(body: BertModel, ids: list[list[int]]) -> tuple[Tensor, Tensor]:
    """States float32 [batch, tokens, width], and which of them are tokens, bool."""
    tokens = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, own in enumerate(ids):
        tokens[row, : len(own)] = torch.tensor(own)
        mask[row, : len(own)] = 1
    with autocast("cpu"):
        states = hidden_states(body, tokens, mask, torch.zeros_like(tokens))
    return states.float(), mask.bool()


@torch.no_grad()
def _encoded(body: BertModel, texts: _Texts, part: Part, what: str) -> Part:
    """Returns the same texts with states of the tuned encoder."""
    body.train(False)
    ids = texts.ids(part)
    order = np.argsort([len(each) for each in ids], kind="stable")
    found: dict[int, NDArray[np.float16]] = {}
    for begin in followed(range(0, len(order), _AT_ONCE), what, -(-len(order) // _AT_ONCE)):
        places = order[begin : begin + _AT_ONCE].tolist()
        made = _states(body, [ids[place] for place in places])[0].numpy()
        for place, own in zip(places, made, strict=True):
            found[place] = own[: len(ids[place])].astype(np.float16)
    states = np.concatenate([found[place] for place in range(len(ids))])
    return Part(part.rows, Encoded(states, part.encoded.ends, part.encoded.offsets))
