"""A checkpoint as a reader: span logits for every token, and one relevance logit.

Knows how each kind of network says how relevant a passage is, and what score follows from it.
"""

from torch import Tensor, nn
from transformers import (
    BertForQuestionAnswering,
    DistilBertForQuestionAnswering,
    DPRReader,
    PreTrainedModel,
)

from models.assemble import Score
from models.exporting.files import CheckpointError
from models.exporting.layout import Checkpoint
from models.exporting.network import load, run

_KINDS: dict[str, type[PreTrainedModel]] = {
    kind.__name__: kind
    for kind in (DPRReader, BertForQuestionAnswering, DistilBertForQuestionAnswering)
}

Logits = tuple[Tensor, Tensor, Tensor]
"""Start and end [batch, tokens] and relevance [batch], float32."""


class RelevanceReader(nn.Module):
    """DPR's reader: relevance has a separate head, and alone decides between passages
    (Karpukhin et al. 2020, section 6.1).

    DPR's sequences end with the passage, Winnow's with one more separator. It is masked
    out, so that every other token attends to the same tokens as in DPR.
    """

    heads = ("qa_outputs", "qa_classifier")
    score = Score(relevance=1.0, span=0.0, distance=0.0)
    token_types = (0, 0)

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """int64 [batch, tokens] three times to `Logits`."""
        mask = _without_last(attention_mask)
        output = run(self.network, input_ids, mask, token_type_ids)
        return output.start_logits, output.end_logits, output.relevance_logits


class SpanReader(nn.Module):
    """A network with span heads only, as trained on SQuAD.

    Its relevance logit is minus the score of the empty span at the first token, so that relevance
    and span, each with weight one, give the best span's lead over no answer (Devlin et al. 2019,
    section 4.3). It also makes passages comparable: a softmax does not fix what its logits are
    measured from.
    """

    heads = ("qa_outputs",)
    score = Score(relevance=1.0, span=1.0, distance=0.0)
    token_types = (0, 1)

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Logits:
        """int64 [batch, tokens] three times to `Logits`."""
        output = run(self.network, input_ids, attention_mask, token_type_ids)
        start, end = output.start_logits, output.end_logits
        return start, end, -(start[:, 0] + end[:, 0])


CheckpointReader = RelevanceReader | SpanReader


def open_reader(checkpoint: Checkpoint) -> CheckpointReader:
    """Loads the checkpoint as a reader.

    Raises:
        CheckpointError: it is not one, or its weights are not whole.

    """
    kind = _KINDS.get(checkpoint.architecture)
    if kind is None:
        raise CheckpointError(
            f"{checkpoint.directory} holds a {checkpoint.architecture}, which cannot read: one of "
            f"{', '.join(_KINDS)} is needed"
        )
    network = load(checkpoint, kind)
    return RelevanceReader(network) if kind is DPRReader else SpanReader(network)


def _without_last(mask: Tensor) -> Tensor:
    """Returns the mask [batch, tokens] less the last attended token of each sequence."""
    return mask * (mask.cumsum(1) < mask.sum(1, keepdim=True)).to(mask.dtype)
