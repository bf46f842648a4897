"""From `head.json` back to the training that made it, so that it can be done again."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from models.data.rows import DataError
from models.heads.rows import Fields
from models.heads.settings import Job, Plan
from winnow.files.opened import sha256
from winnow.heads.manifest import HeadManifest


def recorded_job(manifest: HeadManifest, directories: Sequence[Path]) -> Job:
    """The job that trained a head.

    Args:
        manifest: of the head.
        directories: where files are looked for that are not where they were, by their names.

    Raises:
        DataError: the manifest does not say what it was trained on; a file is missing, or is not
            the one it was.

    """
    trained = manifest.trained_on
    if trained is None:
        raise DataError(f"head {manifest.id} does not say what it was trained on: train it by hand")
    data = _found(trained.data, directories)
    if (digest := sha256(data)) != trained.sha256:
        raise DataError(
            f"{data} is not what head {manifest.id} was trained on: its SHA-256 is {digest}, not "
            f"{trained.sha256}"
        )
    options = trained.options
    plan = {each.name: options[each.name] for each in fields(Plan) if each.name in options}
    try:
        usual = Fields(options["text_field"], options["label_field"], manifest.multi_label)
        return Job(
            manifest.kind,
            data,
            usual,
            Plan(**plan),
            _optional(options, "validation", directories),
            _optional(options, "test", directories),
            options["out_of_scope"],
        )
    except KeyError as error:
        raise DataError(
            f"head {manifest.id} does not say its {error.args[0]}: it was not made by "
            "`winnow models train-head`; train it by hand"
        ) from error


def _optional(options: dict[str, Any], name: str, directories: Sequence[Path]) -> Path | None:
    return _found(options[name], directories) if options[name] else None


def _found(recorded: str, directories: Sequence[Path]) -> Path:
    places = [Path(recorded), *(each / Path(recorded).name for each in directories)]
    for place in places:
        if place.is_file():
            return place
    raise DataError(f"no file {recorded}: name the directory that holds it with --data")
