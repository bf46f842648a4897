"""What the two encoders of a bundle must agree on: how states are pooled and vectors compared.

Knows what directories say and what their families are known for; opens no weights.
"""

from models.exporting.errors import CheckpointError
from models.exporting.layout import Checkpoint
from models.exporting.sentence import Pooling, Similarity


def pooling_of(question: Checkpoint, passage: Checkpoint, wanted: Pooling | None) -> Pooling:
    """What was asked for, else what both directories say, else the mean; DPR's is the first token.

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
    """What was asked for, else what both directories say: DPR's is the inner product, others' the
    cosine unless they say otherwise.

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
