"""Settings of an encoder node."""

import pytest

from winnow.encoder_node.settings import EncoderSettings
from winnow.settings.common import cores
from winnow.settings.errors import SettingsError


def test_a_processor_encodes_one_text_a_run_on_every_core() -> None:
    settings = EncoderSettings.load({})
    assert settings.batch_limits.texts == 1
    assert settings.runs == settings.inference.runs == cores()


def test_a_gpu_encodes_sixteen_texts_a_run_one_run_at_a_time() -> None:
    settings = EncoderSettings.load({"runtime": "cuda"})
    assert (settings.batch_limits.texts, settings.runs) == (16, 1)
    settings = EncoderSettings.load({"runtime": "cuda", "batch": 4, "threads": 2})
    assert (settings.batch_limits.texts, settings.runs) == (4, 2)


def test_more_than_sixteen_texts_a_run_are_refused() -> None:
    with pytest.raises(SettingsError, match="--batch"):
        EncoderSettings.load({"batch": 17})
