"""The encoder: trained, and as its finished run left it."""

from pathlib import Path

from models.network.architecture import Encoder, freeze_embeddings, load_body
from models.network.averaging import mixed
from models.network.weights import open_tokenizer
from models.steps.mining import load_learnt
from models.steps.training import train
from models.training import checkpoint
from models.training.encoding_task import EncodingPlan, EncodingTask
from models.training.loop import Schedule
from models.workspace import Workspace

ENCODED = {
    "squad": 3.0,
    "squad-tokenised": 2.0,
    "squadshifts-amazon_reviews": 0.3,
    "squadshifts-reddit": 0.3,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 1.0,
    "webquestions-train": 2.0,
}
"""How often the encoder sees the passages of each source."""
TRAINED_SHARE = 0.7
"""Of the encoder's weights: the pretrained ones know more of the world than the training set has
(Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
"""


def train_encoder(
    weights: Path, work: Workspace, plan: EncodingPlan, schedule: Schedule, every: int
) -> None:
    """Trains the encoder, from its checkpoint if there is one."""
    passages, learnt = load_learnt(work)
    encoder = Encoder(load_body(weights))
    freeze_embeddings(encoder.body)
    task = EncodingTask(encoder, open_tokenizer(weights), passages, learnt, plan, schedule.seed)
    train(task, schedule, work.run("encoder"), every)


def trained_encoder(weights: Path, work: Workspace) -> Encoder:
    """The encoder as its finished run left it, mixed with what it was before any training.

    Without a finished run it is the pretrained one.
    """
    encoder = Encoder(load_body(weights))
    state = checkpoint.finished(work.run("encoder"))
    if state is not None:
        encoder.load_state_dict(mixed(encoder.state_dict(), state["network"], TRAINED_SHARE))
    return encoder.eval()
