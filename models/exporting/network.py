"""transformers' own classes, loaded whole and called in one way.

Knows how to load a checkpoint into a class and refuses to invent what it lacks; knows which classes
look at token types. What is computed from the outputs is `encoder` and `reader`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertModel, DistilBertModel, DPRReader, PreTrainedModel

from models.exporting.files import CheckpointError
from models.exporting.layout import Checkpoint
from models.network.architecture import quiet

_NAMED = 3
"""Weights that a message names, at most."""


def load(checkpoint: Checkpoint, kind: type[PreTrainedModel], **options: Any) -> PreTrainedModel:
    """Returns the checkpoint's network in float32, dropout off (as transformers hands it over).

    Attention is written out, so that tracing sees plain operators.

    Raises:
        CheckpointError: a weight is missing, of another shape or no number, or the file cannot be
            read.

    """
    try:
        with quiet():  # its reports are given by name below
            loaded: Any = kind.from_pretrained(
                checkpoint.transformer,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                local_files_only=True,
                dtype=torch.float32,
                attn_implementation="eager",
                **options,
            )
    except Exception as error:  # transformers passes on any exception of its readers
        raise CheckpointError(
            f"{checkpoint.weights} cannot be loaded: {error}; it may be cut off or damaged: "
            "download it again"
        ) from error
    network: PreTrainedModel
    network, report = loaded
    _refuse_gaps(checkpoint, network, report)
    return network


def run(network: PreTrainedModel, ids: Tensor, mask: Tensor, types: Tensor) -> Any:
    """Returns the network's own forward over int64 [batch, tokens] three times.

    A network without token types takes them all the same: the graph must keep the input, since
    every bundle is fed alike, so they are added to the ids with no weight.
    """
    if _looks_at_types(network):
        return network(input_ids=ids, attention_mask=mask, token_type_ids=types)
    return network(input_ids=ids + 0 * types, attention_mask=mask)


def body(network: nn.Module) -> BertModel | DistilBertModel:
    """Returns the transformer inside."""
    return next(m for m in network.modules() if isinstance(m, BertModel | DistilBertModel))


def _looks_at_types(network: PreTrainedModel) -> bool:
    if isinstance(body(network), DistilBertModel) or isinstance(network, DPRReader):
        return False
    return int(network.config.type_vocab_size) > 1


def _refuse_gaps(checkpoint: Checkpoint, network: PreTrainedModel, report: dict[str, Any]) -> None:
    missing = sorted(report["missing_keys"])
    if missing:
        raise CheckpointError(
            f"{checkpoint.weights} lacks {_some(missing)}, which {type(network).__name__} has: "
            f"these are the weights of another network ({checkpoint.architecture}), or of one "
            "without that head; name the directory of one that was trained for this"
        )
    shapes = [f"{name} {tuple(found)}" for name, found, _ in sorted(report["mismatched_keys"])]
    if shapes:
        raise CheckpointError(
            f"{checkpoint.weights} has {_some(shapes)}, which is not what config.json says: take "
            "both from the same download"
        )
    wrong = sorted(name for name, w in network.named_parameters() if not w.isfinite().all())
    if wrong:
        raise CheckpointError(
            f"{checkpoint.weights} has values that are no numbers in {_some(wrong)}: it is "
            "damaged, download it again"
        )


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
