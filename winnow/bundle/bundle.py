"""A verified bundle on disk. Checks the files against the manifest; opens no models."""

from dataclasses import dataclass
from pathlib import Path

from winnow.bundle.manifest import Manifest, read_manifest
from winnow.files.opened import verify


@dataclass(frozen=True, slots=True)
class Bundle:
    """A verified bundle in a local directory."""

    directory: Path
    manifest: Manifest

    @property
    def question_encoder(self) -> Path:
        return self.directory / self.manifest.encoder.question

    @property
    def passage_encoder(self) -> Path:
        return self.directory / self.manifest.encoder.passage

    @property
    def reader(self) -> Path:
        return self.directory / self.manifest.reader.file

    @property
    def late_interaction(self) -> bytes:
        """The nodes that follow the encoder's nodes; empty without late interaction."""
        late = self.manifest.late_interaction
        return b"" if late is None else (self.directory / late.file).read_bytes()

    @property
    def tokenizer(self) -> Path:
        return self.directory / self.manifest.tokenizer


def load_bundle(directory: Path) -> Bundle:
    """Reads a manifest and verifies every file of the bundle.

    Raises ArtefactError if the manifest or a file is missing or damaged.
    """
    manifest = read_manifest(directory)
    for name, entry in manifest.files.items():
        verify(directory / name, entry.sha256, entry.bytes)
    return Bundle(directory, manifest)
