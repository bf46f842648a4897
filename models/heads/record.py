"""The record of a training in `head.json`, and the training that a record describes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from models.data import DataError
from models.heads.problem import Problem
from models.heads.rows import Fields
from models.heads.settings import HeadJob, HeadPlan
from winnow.bundle import Bundle
from winnow.files.opened import sha256
from winnow.heads.manifest import HeadManifest

REFIT_OF = "refit_of"
"""Key in the provenance of a head: the head that it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNaming:
    """Fields of a head that the user chooses."""

    id: str
    tenant: str = ""
    version: int = 1
    licences: dict[str, str] = field(default_factory=dict)
    names_only: bool = False
    """Whether files are recorded by name, without the directories of this machine."""
    refit_of: str = ""
    """Checksum of the manifest of the head that this one replaces."""


def manifest_fields(
    job: HeadJob, naming: HeadNaming, bundle: Bundle, problem: Problem
) -> dict[str, Any]:
    """Returns fields of the manifest. `models.heads.record` reads the training options back."""

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


def recorded_job(manifest: HeadManifest, directories: Sequence[Path]) -> HeadJob:
    """Returns the job that trained a head.

    Args:
        manifest: of the head.
        directories: where files are looked for that are not where they were, by their names.

    Raises:
        DataError: the manifest does not say what it was trained on; a file is missing, or is not
            the one it was.

    """
    trained = manifest.trained_on
    if trained is None:
        raise DataError(
            f"the manifest of head {manifest.id} lacks `trained_on`: "
            "retrain it with explicit options"
        )
    data = _found(trained.data, directories)
    if (digest := sha256(data)) != trained.sha256:
        raise DataError(
            f"{data} is not what head {manifest.id} was trained on: its SHA-256 is {digest}, not "
            f"{trained.sha256}"
        )
    options = trained.options
    plan = {each.name: options[each.name] for each in fields(HeadPlan) if each.name in options}
    try:
        usual = Fields(options["text_field"], options["label_field"], manifest.multi_label)
        return HeadJob(
            kind=manifest.kind,
            data=data,
            fields=usual,
            plan=HeadPlan(**plan),
            validation=_optional(options, "validation", directories),
            test=_optional(options, "test", directories),
            out_of_scope=options["out_of_scope"],
        )
    except KeyError as error:
        raise DataError(
            f"the manifest of head {manifest.id} lacks {error.args[0]}: the head was not made by "
            "`winnow models train-head`, so retrain it with explicit options"
        ) from error


def _optional(options: dict[str, Any], name: str, directories: Sequence[Path]) -> Path | None:
    return _found(options[name], directories) if options[name] else None


def _found(recorded: str, directories: Sequence[Path]) -> Path:
    places = [Path(recorded), *(each / Path(recorded).name for each in directories)]
    for place in places:
        if place.is_file():
            return place
    raise DataError(f"no file {recorded}: name the directory that holds it with --data")
