"""What `head.json` says of a head before anything of it is measured."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from models.heads.problem import Problem
from models.heads.settings import Job
from winnow.bundle import Bundle
from winnow.files.opened import sha256

REFIT_OF = "refit_of"
"""In the provenance of a head: the head that it takes the place of."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What only the user can say of a head."""

    id: str
    tenant: str = ""
    version: int = 1
    licences: dict[str, str] = field(default_factory=dict)
    names_only: bool = False
    """Whether files are recorded by name, without the directories of this machine."""
    refit_of: str = ""
    """The checksum of the manifest of the head that this one takes the place of."""


def described(job: Job, naming: Naming, bundle: Bundle, problem: Problem) -> dict[str, Any]:
    """Fields of the manifest. `models.heads.recorded` reads the training options back."""

    def named(path: Path | None) -> str:
        return "" if path is None else path.name if naming.names_only else str(path.resolve())

    return {
        "id": naming.id,
        "tenant": naming.tenant,
        "version": naming.version,
        "kind": job.kind.value,
        "labels": list(problem.labels),
        "multi_label": problem.multi_label,
        "encoder": {
            "name": bundle.manifest.name,
            "fingerprint": bundle.manifest.states_fingerprint,
            "width": problem.width,
        },
        "trained_on": {
            "data": named(job.data),
            "sha256": sha256(job.data),
            "rows": len(problem.learnt.rows),
            "options": {
                "text_field": job.fields.text,
                "label_field": job.fields.label,
                "out_of_scope": job.out_of_scope,
                "validation": named(job.validation),
                "test": named(job.test),
                **asdict(job.plan),
            },
        },
        "licences": naming.licences,
        "provenance": {
            "command": "winnow models train-head",
            **({REFIT_OF: naming.refit_of} if naming.refit_of else {}),
        },
    }
