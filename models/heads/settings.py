"""The settings of a training of a head, and of the heads for public data sets."""

from dataclasses import dataclass
from pathlib import Path

from models.heads.rows import Fields
from winnow.heads.manifest import Kind

OUT_OF_SCOPE = "oos"
"""The label of texts that have none of the labels, as CLINC150 calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlan:
    """Settings of the training of a head; the defaults measured best on held-out texts."""

    epochs: int = 30
    """Most passes over the texts."""
    patience: int = 8
    """Epochs without a better result on held-out texts, after which training ends."""
    batch: int = 64
    """Texts in a step."""
    rate: float = 3e-3
    """The highest learning rate."""
    decay: float = 0.02
    """Weight decay (AdamW)."""
    dropout: float = 0.4
    smoothing: float = 0.1
    """Share of the right label's probability that is spread over all labels."""
    hidden: int = 160
    """Values of the hidden layer."""
    queries: int = 4
    """Weighted means of a text that a sequence head looks at."""
    held_out: float = 0.1
    """Share of the texts that stop training, calibrate and judge quantisation."""
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadJob:
    """A kind of head, with the files that it learns from."""

    kind: Kind
    data: Path
    fields: Fields
    plan: HeadPlan
    validation: Path | None = None
    """Held-out texts; None to hold some of `data` out."""
    test: Path | None = None
    out_of_scope: str = OUT_OF_SCOPE


_PLAN = HeadPlan()
_LARGE_PLAN = HeadPlan(epochs=20)
"""More texts than the others: fewer passes."""
_TOKEN_PLAN = HeadPlan(epochs=16, batch=32, rate=2e-3)
"""Tokens are many: fewer passes, and smaller steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A data set in files NAME-train, NAME-test and, if it has one, a validation set."""

    id: str
    """Id of the head."""
    name: str
    kind: Kind
    licence: str
    validation: str = ""
    """Suffix of the validation file's name; empty if there is none."""
    plan: HeadPlan = _PLAN

    def job(self, directory: Path) -> HeadJob:
        """Returns the job that learns this head from the files in `directory`."""

        def file(part: str) -> Path:
            return directory / f"{self.name}-{part}.jsonl.zst"

        usual = Fields("tokens", "labels") if self.kind is Kind.TOKEN else Fields("text", "label")
        validation = file(self.validation) if self.validation else None
        return HeadJob(
            kind=self.kind,
            data=file("train"),
            fields=usual,
            plan=self.plan,
            validation=validation,
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
