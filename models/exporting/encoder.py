"""A checkpoint as an encoder of questions or of passages.

Knows how each kind of network makes one vector of a text, and on what the two encoders of a bundle
must agree: how states are pooled and vectors compared. How vectors are compared is `comparison`'s.
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

from models.exporting.comparison import AskedByProduct, Direction, FoundByProduct, norm_bound
from models.exporting.files import CheckpointError
from models.exporting.layout import Checkpoint
from models.exporting.network import body, load, run
from models.exporting.sentence import Pooling, Similarity


class Side(StrEnum):
    """Texts that an encoder encodes."""

    QUESTION = "question"
    PASSAGE = "passage"


_DPR: dict[Side, type[PreTrainedModel]] = {
    Side.QUESTION: DPRQuestionEncoder,
    Side.PASSAGE: DPRContextEncoder,
}


class CheckpointEncoder(nn.Module):
    """Token ids to a vector of norm one."""

    def __init__(self, network: PreTrainedModel, pooling: Pooling, comparison: nn.Module) -> None:
        super().__init__()
        self.network, self.comparison = network, comparison
        self._pooling = pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """int64 [batch, tokens] three times to float32 [batch, dimension]."""
        vectors: Tensor = self.comparison(self.raw(input_ids, attention_mask, token_type_ids))
        return vectors

    def raw(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Returns the pooled vector, before the similarity transform (`comparison`).

        Its type is float32, its shape [batch, width].
        """
        output = run(self.network, input_ids, attention_mask, token_type_ids)
        if isinstance(self.network, DPRQuestionEncoder | DPRContextEncoder):
            pooled: Tensor = output.pooler_output
            return pooled
        states: Tensor = output.last_hidden_state
        if self._pooling is Pooling.CLS:
            return states[:, 0]
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        return (states * mask).sum(1) / mask.sum(1).clamp(min=1)

    @property
    def width(self) -> int:
        """Values of the raw vector."""
        projection = _projection(self.network)
        return projection.out_features if projection else int(self.network.config.hidden_size)

    @property
    def dimension(self) -> int:
        """Values of the vector in an index."""
        return self.width + (not isinstance(self.comparison, Direction))


def open_encoder(
    checkpoint: Checkpoint, side: Side, pooling: Pooling, similarity: Similarity
) -> CheckpointEncoder:
    """Loads the checkpoint as an encoder of `side`.

    Raises:
        CheckpointError: it is not one, or its weights are not whole.

    """
    network = _network(checkpoint, side)
    return CheckpointEncoder(network, pooling, _comparison(network, side, similarity))


def _network(checkpoint: Checkpoint, side: Side) -> PreTrainedModel:
    if checkpoint.family == "dpr":
        kind = _DPR[side]
        if checkpoint.architecture != kind.__name__:
            raise CheckpointError(
                f"{checkpoint.directory} holds a {checkpoint.architecture}: to encode a {side} a "
                f"{kind.__name__} is needed"
            )
        return load(checkpoint, kind)
    if checkpoint.architecture.endswith("QuestionAnswering"):
        raise CheckpointError(
            f"{checkpoint.directory} holds a {checkpoint.architecture}, a reader: to encode a "
            f"{side} an encoder is needed"
        )
    if checkpoint.family == "distilbert":
        return load(checkpoint, DistilBertModel)
    return load(checkpoint, BertModel, add_pooling_layer=False)


def _comparison(network: PreTrainedModel, side: Side, similarity: Similarity) -> nn.Module:
    if similarity is Similarity.COSINE:
        return Direction()
    if side is Side.QUESTION:
        return AskedByProduct()
    return FoundByProduct(norm_bound(body(network), _projection(network)))


def _projection(network: nn.Module) -> nn.Linear | None:
    """DPR's optional layer on top."""
    found = (module for name, module in network.named_modules() if name.endswith("encode_proj"))
    return next((module for module in found if isinstance(module, nn.Linear)), None)


def pooling_of(question: Checkpoint, passage: Checkpoint, wanted: Pooling | None) -> Pooling:
    """Returns the chosen pooling, else that of both directories, else the mean.

    The pooling of DPR is the first token.

    Raises:
        CheckpointError: the two encoders pool differently, or DPR is asked to.

    """
    asked, found = _own_pooling(question), _own_pooling(passage)
    dpr = next((one.directory for one in (question, passage) if one.family == "dpr"), None)
    if dpr and wanted is Pooling.MEAN:
        raise CheckpointError(f"{dpr} is of DPR, which pools by {Pooling.CLS}, not {wanted}")
    if wanted is None and asked is not found:
        raise CheckpointError(
            f"{question.directory} pools by {asked}, {passage.directory} by {found}: these "
            "encoders were not trained together; if they were, say --pooling"
        )
    return wanted or asked


def similarity_of(
    question: Checkpoint, passage: Checkpoint, wanted: Similarity | None
) -> Similarity:
    """Returns the chosen similarity, else that of both directories.

    Without a setting it is the inner product for DPR, and the cosine for others.

    Raises:
        CheckpointError: the two encoders compare vectors differently.

    """
    if wanted is not None:
        return wanted
    asked, found = _own_similarity(question), _own_similarity(passage)
    if asked is not found:
        raise CheckpointError(
            f"{question.directory} compares by {asked}, {passage.directory} by {found}: these "
            "encoders were not trained together; if they were, say --similarity"
        )
    return asked


def _own_pooling(checkpoint: Checkpoint) -> Pooling:
    default = Pooling.CLS if checkpoint.family == "dpr" else Pooling.MEAN
    return checkpoint.sentence.pooling or default


def _own_similarity(checkpoint: Checkpoint) -> Similarity:
    default = Similarity.DOT if checkpoint.family == "dpr" else Similarity.COSINE
    return checkpoint.sentence.similarity or default
