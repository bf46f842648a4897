"""A head on disk: a directory with `head.json` and `head.onnx`.

Knows that the files are what the manifest says; opens no model.
"""

from dataclasses import dataclass
from pathlib import Path

from winnow.files.opened import OpenFile
from winnow.heads.manifest import MODEL, HeadManifest, read_head_manifest


@dataclass(frozen=True, slots=True)
class HeadArtefact:
    """A directory whose files were checked against its manifest."""

    directory: Path
    manifest: HeadManifest

    def model(self) -> OpenFile:
        """The file of the model, verified again: what is read of it is what was checked.

        Raises:
            ArtefactError: it is missing, or not what the manifest says.

        """
        file = OpenFile(self.directory / MODEL)
        file.verify(self.manifest.model.sha256, self.manifest.model.bytes)
        return file


def load_head(directory: Path) -> HeadArtefact:
    """Reads the manifest of a head, and verifies its model.

    Raises:
        ArtefactError: a file is missing, or not what it should be.

    """
    artefact = HeadArtefact(directory, read_head_manifest(directory))
    artefact.model()
    return artefact
