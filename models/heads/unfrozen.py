"""Trains a head together with its own encoder, to measure what a shared encoder costs in accuracy.

The encoder starts from the pretrained weights of the default bundle's encoder. The result is never
served, because every such head would need its own encoder.
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

from models.heads.making import HeadMaker, finish_head
from models.heads.objectives import HeadObjective, new_objective
from models.heads.record import HeadNaming, manifest_fields
from models.heads.settings import HeadJob
from models.heads.states import EncodedTexts, draw_batches
from models.heads.task import LabelledTexts, read_head_task
from models.heads.training import TrainedHead
from models.network.architecture import freeze_embeddings, hidden_states, load_body
from models.network.weights import open_tokenizer
from models.progress import track
from models.training.loop import TrainingError, autocast, learning_rate_share

EPOCHS = 3
"""Passes over the texts."""
_ENCODER_RATE, _HEAD_RATE = 1e-4, 2e-3
"""Peak learning rates."""
_BATCH, _WARMUP = 32, 0.1
_TEXTS_PER_BATCH = 128
"""Number of texts that are encoded in one batch."""


def measure_unfrozen(
    job: HeadJob, maker: HeadMaker, weights: Path, epochs: int
) -> dict[str, float]:
    """Returns the accuracy of a head that was trained together with the encoder in `weights`.

    Raises:
        DataError: a file is missing or invalid.
        TrainingError: the loss is no longer finite.

    """
    task = read_head_task(job, maker.bundle, maker.states_cache, maker.report)
    torch.manual_seed(job.plan.seed)
    body = load_body(weights)
    freeze_embeddings(body)
    tokenizer = _TextTokenizer(
        open_tokenizer(weights), maker.bundle.manifest.encoder.max_question_tokens
    )
    objective = new_objective(task, job.plan)
    _fine_tune(body, objective, tokenizer.ids(task.training), epochs, job.plan.seed)
    tuned = replace(
        task,
        held_out=_with_tuned_states(body, tokenizer, task.held_out, "encode held-out texts"),
        test=task.test and _with_tuned_states(body, tokenizer, task.test, "encode test texts"),
    )
    tuned_objective = new_objective(tuned, job.plan)
    tuned_objective.network.load_state_dict(objective.network.state_dict())
    tuned_objective.tune_biases()
    with TemporaryDirectory() as directory:
        fields = manifest_fields(job, HeadNaming(id="unfrozen"), maker.bundle, tuned)
        trained = TrainedHead(tuned_objective, epochs, tuned_objective.score())
        return finish_head(Path(directory) / "head", fields, trained, tuned, maker).accuracy


class _TextTokenizer:
    """Tokenises texts and truncates them as the served encoder does."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens

    def ids(self, texts: LabelledTexts) -> list[list[int]]:
        """Returns the token ids of every text, with [CLS] and [SEP]."""
        return [
            each.ids
            if len(each.ids) <= self._max_tokens
            else [*each.ids[: self._max_tokens - 1], each.ids[-1]]
            for each in self._tokenizer.encode_batch([row.text for row in texts.rows])
        ]


def _fine_tune(
    body: BertModel, objective: HeadObjective, ids: list[list[int]], epochs: int, seed: int
) -> None:
    """Trains encoder and head on the texts with these token ids."""
    lengths = np.array([len(each) for each in ids])
    generator = np.random.default_rng(seed)
    batches = [
        indices
        for _ in range(epochs)
        for indices in draw_batches(np.arange(len(ids)), lengths, _BATCH, generator)
    ]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in body.parameters() if p.requires_grad], "peak_lr": _ENCODER_RATE},
        {"params": list(objective.network.parameters()), "peak_lr": _HEAD_RATE},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    body.train()
    objective.network.train()
    for step, indices in enumerate(track(batches, "train", len(batches))):
        for group in optimiser.param_groups:
            group["lr"] = group["peak_lr"] * learning_rate_share(step / len(batches), _WARMUP)
        states, mask = _compute_states(body, [ids[int(index)] for index in indices])
        loss = objective.loss(states, mask, indices)
        if not torch.isfinite(loss):
            raise TrainingError(f"the loss is {loss.item()} at step {step}")
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], 1.0)
        optimiser.step()


def _compute_states(body: BertModel, ids: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Returns float32 states [texts, tokens, width] and the bool mask of tokens [texts, tokens]."""
    tokens = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, text_ids in enumerate(ids):
        tokens[row, : len(text_ids)] = torch.tensor(text_ids)
        mask[row, : len(text_ids)] = 1
    with autocast("cpu"):
        states = hidden_states(body, tokens, mask, torch.zeros_like(tokens))
    return states.float(), mask.bool()


@torch.no_grad()
def _with_tuned_states(
    body: BertModel, tokenizer: _TextTokenizer, texts: LabelledTexts, label: str
) -> LabelledTexts:
    """Returns the same texts with states of the fine-tuned encoder `body`."""
    body.train(False)
    ids = tokenizer.ids(texts)
    order = np.argsort([len(each) for each in ids], kind="stable")
    by_text: dict[int, NDArray[np.float16]] = {}
    begins = range(0, len(order), _TEXTS_PER_BATCH)
    for begin in track(begins, label, len(begins)):
        indices = order[begin : begin + _TEXTS_PER_BATCH].tolist()
        batch = _compute_states(body, [ids[index] for index in indices])[0].numpy()
        for index, states in zip(indices, batch, strict=True):
            by_text[index] = states[: len(ids[index])].astype(np.float16)
    states = np.concatenate([by_text[index] for index in range(len(ids))])
    return LabelledTexts(
        texts.rows, EncodedTexts(states, texts.encoded.ends, texts.encoded.offsets)
    )
