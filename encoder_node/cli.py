"""`winnow encoder`."""

from winnow import signals
from winnow.encoder_node.settings import EncoderSettings
from winnow.settings.command import settings_command


def _run(settings: EncoderSettings) -> None:
    with signals.importing():
        from winnow.encoder_node.__main__ import run  # noqa: PLC0415 (not for --help)

    run(settings)


encoder = settings_command(EncoderSettings, _run)
