"""The model of token vectors is opened when it is needed, from a bundle that is verified again."""

import shutil
from pathlib import Path

import pytest
from damaged_files import flip_bit
from manual_clock import ManualClock
from whole_bundle import NEXT

from winnow.bundle import Bundle, load_bundle
from winnow.content_node.composing.parts import SharedPassageTokens
from winnow.errors import ArtefactError

pytestmark = pytest.mark.bundle


def test_a_bundle_that_was_damaged_since_the_start_is_tried_again_a_minute_later(
    tmp_path: Path,
) -> None:
    """Questions must not wait for a try each."""
    directory = Path(shutil.copytree(NEXT, tmp_path / "bundle"))
    clock, encoder = ManualClock(), directory / "encoder.onnx"
    shared = SharedPassageTokens(load_bundle(directory), clock)
    flip_bit(encoder, 1_000_000)
    with pytest.raises(ArtefactError, match=r"encoder\.onnx is damaged"):
        shared.open()
    flip_bit(encoder, 1_000_000)
    clock.advance(59)
    with pytest.raises(ArtefactError, match=r"encoder\.onnx is damaged"):
        shared.open()
    clock.advance(1)
    assert shared.open() is shared.open()


def test_bundles_share_the_cache_and_the_thread_of_a_process(bundle: Bundle) -> None:
    """The limits are those of the process, and closing it ends the thread."""
    shared = SharedPassageTokens(bundle)
    other = shared.of_bundle(load_bundle(NEXT))
    assert (other.computed, other.background) == (shared.computed, shared.background)
