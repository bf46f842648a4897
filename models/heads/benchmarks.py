"""The public data sets that heads are measured on, and how each head is trained."""

from dataclasses import dataclass
from pathlib import Path

from models.heads.rows import Fields
from models.heads.settings import Job, Plan
from winnow.heads.manifest import Kind

_PLAN = Plan()
_LARGE_PLAN = Plan(epochs=20)
"""More texts than the others: fewer passes."""
_TOKEN_PLAN = Plan(epochs=16, batch=32, rate=2e-3)
"""Tokens are many: fewer passes, and smaller steps."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A data set in files NAME-train, NAME-test and, if it has one, a validation set."""

    id: str
    """Of the head."""
    name: str
    kind: Kind
    licence: str
    validation: str = ""
    """What the validation file's name ends in."""
    plan: Plan = _PLAN

    def job(self, directory: Path) -> Job:
        """What is learnt, from the files in `directory`."""

        def file(part: str) -> Path:
            return directory / f"{self.name}-{part}.jsonl.zst"

        usual = Fields("tokens", "labels") if self.kind is Kind.TOKEN else Fields("text", "label")
        validation = file(self.validation) if self.validation else None
        return Job(self.kind, file("train"), usual, self.plan, validation, file("test"))


BENCHMARKS = (
    Benchmark(
        "intent",
        "clinc150",
        Kind.SEQUENCE,
        "CC BY 3.0 (CLINC150; Larson et al., 2019, An Evaluation Dataset for Intent "
        "Classification and Out-of-Scope Prediction)",
        "val",
        _LARGE_PLAN,
    ),
    Benchmark(
        "banking",
        "banking77",
        Kind.SEQUENCE,
        "CC BY 4.0 (Banking77; Casanueva et al., 2020, Efficient Intent Detection with Dual "
        "Sentence Encoders)",
    ),
    Benchmark(
        "question-type",
        "trec-question-type",
        Kind.SEQUENCE,
        "for research only (TREC; Li and Roth, 2002, Learning Question Classifiers)",
    ),
    Benchmark(
        "entities",
        "wnut17",
        Kind.TOKEN,
        "CC BY 4.0 (WNUT17; Derczynski et al., 2017, Results of the WNUT2017 Shared Task on Novel "
        "and Emerging Entity Recognition)",
        "dev",
        _TOKEN_PLAN,
    ),
)
