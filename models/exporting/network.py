"""Loads checkpoints as models of the library `transformers`, and runs these models.

Refuses checkpoints with missing weights, which the library would fill with random numbers.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertModel, DistilBertModel, DPRReader, PreTrainedModel

from models.exporting.files import CheckpointError
from models.exporting.layout import Checkpoint
from models.network.architecture import quiet_transformers

_SHOWN_WEIGHTS = 3
"""Maximum number of weights in an error."""


def load_network(
    checkpoint: Checkpoint, kind: type[PreTrainedModel], **options: Any
) -> PreTrainedModel:
    """Returns the checkpoint's network in float32, with dropout off.

    The network uses eager attention, so that the tracer sees plain operators.

    Raises:
        CheckpointError: a weight is missing, not finite or of the wrong shape, or the file is
            unreadable.

    """
    try:
        with quiet_transformers():  # missing weights are reported below
            loaded: Any = kind.from_pretrained(
                checkpoint.transformer,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported below
                local_files_only=True,
                dtype=torch.float32,
                attn_implementation="eager",
                **options,
            )
    except Exception as error:  # the readers of transformers raise any exception
        raise CheckpointError(
            f"{checkpoint.weights} cannot be loaded: {error}; it may be cut off or damaged: "
            "download it again"
        ) from error
    network: PreTrainedModel
    network, report = loaded
    _require_all_weights(checkpoint, network, report)
    return network


def run_network(network: PreTrainedModel, ids: Tensor, mask: Tensor, types: Tensor) -> Any:
    """Calls the network with three int64 [batch, tokens].

    Every graph of a bundle needs token types as an input. For a network without token types, they
    are multiplied by zero and added to the ids.
    """
    if _has_token_types(network):
        return network(input_ids=ids, attention_mask=mask, token_type_ids=types)
    return network(input_ids=ids + 0 * types, attention_mask=mask)


def find_body(network: nn.Module) -> BertModel | DistilBertModel:
    """Returns the BERT or DistilBERT body in a network."""
    return next(m for m in network.modules() if isinstance(m, BertModel | DistilBertModel))


def _has_token_types(network: PreTrainedModel) -> bool:
    if isinstance(find_body(network), DistilBertModel) or isinstance(network, DPRReader):
        return False
    return int(network.config.type_vocab_size) > 1


def _require_all_weights(
    checkpoint: Checkpoint, network: PreTrainedModel, report: dict[str, Any]
) -> None:
    missing = sorted(report["missing_keys"])
    if missing:
        raise CheckpointError(
            f"{checkpoint.weights} lacks {_first_names(missing)}, which {type(network).__name__} "
            f"needs: the weights are of another network ({checkpoint.architecture}), or of one "
            "without that head; name a checkpoint that was trained for this role"
        )
    shapes = [f"{name} {tuple(shape)}" for name, shape, _ in sorted(report["mismatched_keys"])]
    if shapes:
        raise CheckpointError(
            f"{checkpoint.weights} has {_first_names(shapes)}, which contradicts config.json: take "
            "both files from the same download"
        )
    wrong = sorted(name for name, w in network.named_parameters() if not w.isfinite().all())
    if wrong:
        raise CheckpointError(
            f"{checkpoint.weights} has values that are not numbers in {_first_names(wrong)}: "
            "download it again"
        )


def _first_names(names: list[str]) -> str:
    more = len(names) - _SHOWN_WEIGHTS
    return ", ".join(names[:_SHOWN_WEIGHTS]) + (f" and {more} more" if more > 0 else "")
