"""The states of the next generation: copied where its base has them, computed for what is new."""

from pathlib import Path

from content_node.reader.lower import open_lower
from content_node.states.known import known_states
from content_node.states.manifest import STATES_FILE
from content_node.states.writing import StatesWriter
from winnow.bundle import load_bundle
from winnow.errors import ArtefactError
from winnow.text.tokenizer import Tokenizer

_THREADS = 1
"""Everything that a node answers goes first."""


def carry_states(bundle: Path, base: Path, made: Path) -> None:
    """Puts states beside `made` if there are some beside `base`.

    Raises:
        ArtefactError: they are not of the bundle's reader; a passage, or the bundle, cannot be
            read.
        OSError: they cannot be written.

    """
    if not (base / STATES_FILE).exists():
        return
    loaded = load_bundle(bundle)
    known = known_states(base, loaded.manifest.lower_fingerprint)
    if known is None:
        raise ArtefactError(f"they are not of the reader of bundle {loaded.manifest.name}")
    lower = open_lower(loaded, Tokenizer(loaded.tokenizer).special)
    StatesWriter(made, lower, known).write(_THREADS, lambda *_: None, lambda _: None)
