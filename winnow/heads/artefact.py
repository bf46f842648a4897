"""A head on disk: a directory with `head.json` and `head.onnx`.

Verifies the files against the manifest; does not load the model.
"""

from dataclasses import dataclass
from pathlib import Path

from winnow.files.opened import OpenFile
from winnow.heads.manifest import MODEL, HeadManifest, read_head_manifest


@dataclass(frozen=True, slots=True)
class HeadArtefact:
    """A verified head in a local directory."""

    directory: Path
    manifest: HeadManifest

    def open_model(self) -> OpenFile:
        """Opens the model file and verifies the bytes of the open file.

        Raises ArtefactError if the file is missing, or differs from the manifest.
        """
        file = OpenFile(self.directory / MODEL)
        file.verify(self.manifest.model.sha256, self.manifest.model.bytes)
        return file


def load_head(directory: Path) -> HeadArtefact:
    """Reads the manifest of a head and verifies its model file.

    Raises ArtefactError if a file is missing or damaged.
    """
    artefact = HeadArtefact(directory, read_head_manifest(directory))
    artefact.open_model()
    return artefact
