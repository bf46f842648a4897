"""Training settings of heads, and the public data sets that heads are measured on."""

from dataclasses import dataclass
from pathlib import Path

from models.heads.rows import Fields
from winnow.heads.manifest import Kind

OUT_OF_SCOPE = "oos"
"""Default label of texts that no other label fits, as in CLINC150."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlan:
    """Training settings of a head, recorded in `head.json` by field name.

    Of the settings that were tried, the defaults were the most accurate on held-out texts.
    """

    epochs: int = 30
    """Maximum number of passes over the texts."""
    patience: int = 8
    """Epochs without a better score on held-out texts after which training ends."""
    batch: int = 64
    """Texts per training step."""
    rate: float = 3e-3
    """Peak learning rate."""
    decay: float = 0.02
    """Weight decay (AdamW)."""
    dropout: float = 0.4
    smoothing: float = 0.1
    """Label smoothing: share of the right label's probability that is spread over all labels."""
    hidden: int = 160
    """Width of the hidden layer."""
    queries: int = 4
    """Number of attention queries of a sequence head."""
    held_out: float = 0.1
    """Share of the texts to hold out for early stopping, calibration and quantisation."""
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadJob:
    """Input files and settings to train one head."""

    kind: Kind
    data: Path
    fields: Fields
    plan: HeadPlan
    validation: Path | None = None
    """File of held-out texts; None to hold out a share of `data`."""
    test: Path | None = None
    out_of_scope: str = OUT_OF_SCOPE


def default_fields(kind: Kind) -> Fields:
    """Returns the usual columns of texts and labels for a kind of head."""
    return Fields("tokens", "labels") if kind is Kind.TOKEN else Fields("text", "label")


DEFAULT_PLAN = HeadPlan()
_LARGE_PLAN = HeadPlan(epochs=20)
"""Settings for a data set with more texts: fewer epochs."""
_TOKEN_PLAN = HeadPlan(epochs=16, batch=32, rate=2e-3)
"""Settings for token heads, whose texts have many tokens: fewer epochs, smaller steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A public data set that a head is trained on and measured on.

    Its files are named NAME-train, NAME-test and NAME-VALIDATION.
    """

    id: str
    """Id of the head."""
    name: str
    kind: Kind
    licence: str
    validation: str = ""
    """Suffix of the validation file; empty to hold out some training texts."""
    plan: HeadPlan = DEFAULT_PLAN

    def job(self, directory: Path) -> HeadJob:
        """Returns the job that trains this head on the files in `directory`."""

        def file(part: str) -> Path:
            return directory / f"{self.name}-{part}.jsonl.zst"

        return HeadJob(
            kind=self.kind,
            data=file("train"),
            fields=default_fields(self.kind),
            plan=self.plan,
            validation=file(self.validation) if self.validation else None,
            test=file("test"),
        )


BENCHMARKS = (
    Benchmark(
        id="intent",
        name="clinc150",
        kind=Kind.SEQUENCE,
        licence="CC BY 3.0 (CLINC150; Larson et al., 2019, An Evaluation Dataset for Intent "
        "Classification and Out-of-Scope Prediction)",
        validation="val",
        plan=_LARGE_PLAN,
    ),
    Benchmark(
        id="banking",
        name="banking77",
        kind=Kind.SEQUENCE,
        licence="CC BY 4.0 (Banking77; Casanueva et al., 2020, Efficient Intent Detection with "
        "Dual Sentence Encoders)",
    ),
    Benchmark(
        id="question-type",
        name="trec-question-type",
        kind=Kind.SEQUENCE,
        licence="for research only (TREC; Li and Roth, 2002, Learning Question Classifiers)",
    ),
    Benchmark(
        id="entities",
        name="wnut17",
        kind=Kind.TOKEN,
        licence="CC BY 4.0 (WNUT17; Derczynski et al., 2017, Results of the WNUT2017 Shared Task "
        "on Novel and Emerging Entity Recognition)",
        validation="dev",
        plan=_TOKEN_PLAN,
    ),
)
