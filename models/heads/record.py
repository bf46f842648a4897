"""Records how a head was trained in `head.json`, and reads the record to train again."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from models.data import DataError
from models.heads.rows import Fields
from models.heads.settings import HeadJob, HeadPlan
from models.heads.task import HeadTask
from winnow.bundle import Bundle
from winnow.files.opened import sha256
from winnow.heads.manifest import HeadManifest

REFIT_OF = "refit_of"
"""Provenance key of a refitted head, for the checksum of the manifest that it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNaming:
    """Fields of a head that the user chooses."""

    id: str
    tenant: str = ""
    version: int = 1
    licences: dict[str, str] = field(default_factory=dict)
    names_only: bool = False
    """Whether paths are recorded without their directories."""
    refit_of: str = ""
    """Manifest checksum of the head that this one replaces; empty for a new head."""


def manifest_fields(
    job: HeadJob, naming: HeadNaming, bundle: Bundle, task: HeadTask
) -> dict[str, Any]:
    """Returns the manifest fields that record a training. `recorded_job` reads these fields."""

    def recorded_path(path: Path | None) -> str:
        return "" if path is None else path.name if naming.names_only else str(path.resolve())

    return {
        "id": naming.id,
        "tenant": naming.tenant,
        "version": naming.version,
        "kind": job.kind.value,
        "labels": list(task.labels),
        "multi_label": task.multi_label,
        "encoder": {
            "name": bundle.manifest.name,
            "fingerprint": bundle.manifest.states_fingerprint,
            "width": task.width,
        },
        "trained_on": {
            "data": recorded_path(job.data),
            "sha256": sha256(job.data),
            "rows": len(task.training.rows),
            "options": {
                "text_field": job.fields.text,
                "label_field": job.fields.label,
                "out_of_scope": job.out_of_scope,
                "validation": recorded_path(job.validation),
                "test": recorded_path(job.test),
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
        manifest: manifest of the head.
        directories: directories to search for files that have moved, by file name.

    Raises:
        DataError: the manifest has no record of the training, or a file is missing or has changed.

    """
    trained = manifest.trained_on
    if trained is None:
        raise DataError(
            f"the manifest of head {manifest.id} lacks `trained_on`: "
            "retrain it with explicit options"
        )
    data = _find_file(trained.data, directories)
    if (digest := sha256(data)) != trained.sha256:
        raise DataError(
            f"{data} is not what head {manifest.id} was trained on: its SHA-256 is {digest}, not "
            f"{trained.sha256}"
        )
    options = trained.options
    plan = {each.name: options[each.name] for each in fields(HeadPlan) if each.name in options}

    def optional_file(name: str) -> Path | None:
        return _find_file(options[name], directories) if options[name] else None

    try:
        return HeadJob(
            kind=manifest.kind,
            data=data,
            fields=Fields(options["text_field"], options["label_field"], manifest.multi_label),
            plan=HeadPlan(**plan),
            validation=optional_file("validation"),
            test=optional_file("test"),
            out_of_scope=options["out_of_scope"],
        )
    except KeyError as error:
        raise DataError(
            f"the manifest of head {manifest.id} lacks {error.args[0]}, because "
            "`winnow models train-head` did not make it: retrain the head and give all options"
        ) from error


def _find_file(recorded: str, directories: Sequence[Path]) -> Path:
    """Returns the recorded path, or the file of this name in one of the directories."""
    for path in (Path(recorded), *(each / Path(recorded).name for each in directories)):
        if path.is_file():
            return path
    raise DataError(f"no file {recorded}: name the directory that holds it with --data")
