"""Loads checkpoints as readers, with span logits for every token and one relevance logit.

Each kind of network has its own relevance logit, and weights of the final score that fit it.
"""

from torch import Tensor, nn
from transformers import (
    BertForQuestionAnswering,
    DistilBertForQuestionAnswering,
    DPRReader,
    PreTrainedModel,
)

from models.assemble import ScoreWeights
from models.exporting.files import CheckpointError
from models.exporting.layout import Checkpoint
from models.exporting.network import load_network, run_network

_CLASSES: dict[str, type[PreTrainedModel]] = {
    each.__name__: each
    for each in (DPRReader, BertForQuestionAnswering, DistilBertForQuestionAnswering)
}

Logits = tuple[Tensor, Tensor, Tensor]
"""Start and end [batch, tokens] and relevance [batch], float32."""


class RelevanceReader(nn.Module):
    """DPR's reader. A separate head ranks passages (Karpukhin et al. 2020, section 6.1).

    DPR's sequences end with the passage, but Winnow's end with one more separator. The separator is
    masked out, so that every other token attends to the same tokens as in DPR.
    """

    heads = ("qa_outputs", "qa_classifier")
    score = ScoreWeights(relevance=1.0, span=0.0, distance=0.0)
    token_types = (0, 0)

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """Maps three int64 [batch, tokens] to `Logits`."""
        mask = _without_last_token(attention_mask)
        output = run_network(self.network, input_ids, mask, token_type_ids)
        return output.start_logits, output.end_logits, output.relevance_logits


class SpanReader(nn.Module):
    """A reader without a relevance head, as trained on SQuAD.

    Its relevance logit is minus the score of the empty span at the first token. Relevance plus span
    is then the best span's lead over no answer (Devlin et al. 2019, section 4.3). The difference is
    also comparable between passages, while the logits of a softmax have an arbitrary zero.
    """

    heads = ("qa_outputs",)
    score = ScoreWeights(relevance=1.0, span=1.0, distance=0.0)
    token_types = (0, 1)

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """Maps three int64 [batch, tokens] to `Logits`."""
        output = run_network(self.network, input_ids, attention_mask, token_type_ids)
        start, end = output.start_logits, output.end_logits
        return start, end, -(start[:, 0] + end[:, 0])


CheckpointReader = RelevanceReader | SpanReader


def open_reader(checkpoint: Checkpoint) -> CheckpointReader:
    """Loads the checkpoint as a reader.

    Raises:
        CheckpointError: the checkpoint is not a reader, or its weights are incomplete.

    """
    network_class = _CLASSES.get(checkpoint.architecture)
    if network_class is None:
        raise CheckpointError(
            f"{checkpoint.directory} holds a {checkpoint.architecture}, which is not a reader: one "
            f"of {', '.join(_CLASSES)} is needed"
        )
    network = load_network(checkpoint, network_class)
    return RelevanceReader(network) if network_class is DPRReader else SpanReader(network)


def _without_last_token(attention_mask: Tensor) -> Tensor:
    """Returns the mask [batch, tokens] without the last attended token of each sequence."""
    is_not_last = attention_mask.cumsum(1) < attention_mask.sum(1, keepdim=True)
    return attention_mask * is_not_last.to(attention_mask.dtype)
