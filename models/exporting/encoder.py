"""Loads checkpoints as encoders of questions or passages.

Both encoders of a bundle must pool states and compare vectors in the same way.
"""

from enum import StrEnum

from torch import Tensor, nn
from transformers import (
    BertModel,
    DistilBertModel,
    DPRContextEncoder,
    DPRQuestionEncoder,
    PreTrainedModel,
)

from models.exporting.comparison import (
    CosineTransform,
    PassageProductTransform,
    QuestionProductTransform,
    norm_bound,
)
from models.exporting.files import CheckpointError
from models.exporting.layout import Checkpoint
from models.exporting.network import find_body, load_network, run_network
from models.exporting.sentence import Pooling, Similarity


class EncoderSide(StrEnum):
    """Texts that an encoder is for: questions or passages."""

    QUESTION = "question"
    PASSAGE = "passage"


_DPR: dict[EncoderSide, type[PreTrainedModel]] = {
    EncoderSide.QUESTION: DPRQuestionEncoder,
    EncoderSide.PASSAGE: DPRContextEncoder,
}


class CheckpointEncoder(nn.Module):
    """Network that maps token ids to a unit vector."""

    def __init__(self, network: PreTrainedModel, pooling: Pooling, transform: nn.Module) -> None:
        super().__init__()
        self.network, self.transform = network, transform
        self._pooling = pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Maps three int64 [batch, tokens] to float32 [batch, dimension]."""
        vectors: Tensor = self.transform(self.pooled(input_ids, attention_mask, token_type_ids))
        return vectors

    def pooled(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Returns the pooled vectors before the transform: float32 [batch, width]."""
        output = run_network(self.network, input_ids, attention_mask, token_type_ids)
        if isinstance(self.network, DPRQuestionEncoder | DPRContextEncoder):
            dpr_vectors: Tensor = output.pooler_output
            return dpr_vectors
        states: Tensor = output.last_hidden_state
        if self._pooling is Pooling.CLS:
            return states[:, 0]
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        return (states * mask).sum(1) / mask.sum(1).clamp(min=1)

    @property
    def width(self) -> int:
        """Number of values of a pooled vector."""
        projection = _find_projection(self.network)
        return projection.out_features if projection else int(self.network.config.hidden_size)

    @property
    def dimension(self) -> int:
        """Number of values of a vector in an index."""
        return self.width + (not isinstance(self.transform, CosineTransform))


def open_encoder(
    checkpoint: Checkpoint, side: EncoderSide, pooling: Pooling, similarity: Similarity
) -> CheckpointEncoder:
    """Loads the checkpoint as an encoder of `side`.

    Raises:
        CheckpointError: the checkpoint is not an encoder, or its weights are incomplete.

    """
    network = _load_encoder_network(checkpoint, side)
    return CheckpointEncoder(network, pooling, _new_transform(network, side, similarity))


def _load_encoder_network(checkpoint: Checkpoint, side: EncoderSide) -> PreTrainedModel:
    if checkpoint.family == "dpr":
        kind = _DPR[side]
        if checkpoint.architecture != kind.__name__:
            raise CheckpointError(
                f"{checkpoint.directory} holds a {checkpoint.architecture}, but encoding a {side} "
                f"needs a {kind.__name__}"
            )
        return load_network(checkpoint, kind)
    if checkpoint.architecture.endswith("QuestionAnswering"):
        raise CheckpointError(
            f"{checkpoint.directory} holds a reader ({checkpoint.architecture}), but encoding a "
            f"{side} needs an encoder"
        )
    if checkpoint.family == "distilbert":
        return load_network(checkpoint, DistilBertModel)
    return load_network(checkpoint, BertModel, add_pooling_layer=False)


def _new_transform(
    network: PreTrainedModel, side: EncoderSide, similarity: Similarity
) -> nn.Module:
    if similarity is Similarity.COSINE:
        return CosineTransform()
    if side is EncoderSide.QUESTION:
        return QuestionProductTransform()
    return PassageProductTransform(norm_bound(find_body(network), _find_projection(network)))


def _find_projection(network: nn.Module) -> nn.Linear | None:
    """Returns DPR's optional projection layer."""
    for name, module in network.named_modules():
        if name.endswith("encode_proj") and isinstance(module, nn.Linear):
            return module
    return None


def choose_pooling(question: Checkpoint, passage: Checkpoint, requested: Pooling | None) -> Pooling:
    """Returns the requested pooling, or the pooling of both checkpoints.

    The default is the first token for DPR, and the mean for others.

    Raises:
        CheckpointError: the encoders pool differently, or DPR does not support `requested`.

    """
    question_pooling, passage_pooling = map(_checkpoint_pooling, (question, passage))
    dpr = next((each.directory for each in (question, passage) if each.family == "dpr"), None)
    if dpr and requested is Pooling.MEAN:
        raise CheckpointError(
            f"{dpr} is a DPR encoder, which pools by {Pooling.CLS}, not {requested}"
        )
    if requested is None and question_pooling is not passage_pooling:
        raise CheckpointError(
            f"{question.directory} pools by {question_pooling}, but {passage.directory} by "
            f"{passage_pooling}: name encoders that were trained together, or set --pooling"
        )
    return requested or question_pooling


def choose_similarity(
    question: Checkpoint, passage: Checkpoint, requested: Similarity | None
) -> Similarity:
    """Returns the requested similarity, or the similarity of both checkpoints.

    The default is the inner product for DPR, and the cosine for others.

    Raises:
        CheckpointError: the encoders compare vectors differently.

    """
    if requested is not None:
        return requested
    question_similarity, passage_similarity = map(_checkpoint_similarity, (question, passage))
    if question_similarity is not passage_similarity:
        raise CheckpointError(
            f"{question.directory} compares by {question_similarity}, but {passage.directory} by "
            f"{passage_similarity}: name encoders that were trained together, or set --similarity"
        )
    return question_similarity


def _checkpoint_pooling(checkpoint: Checkpoint) -> Pooling:
    default = Pooling.CLS if checkpoint.family == "dpr" else Pooling.MEAN
    return checkpoint.settings.pooling or default


def _checkpoint_similarity(checkpoint: Checkpoint) -> Similarity:
    default = Similarity.DOT if checkpoint.family == "dpr" else Similarity.COSINE
    return checkpoint.settings.similarity or default
