"""`winnow standalone`."""

from winnow import signals
from winnow.settings.command import settings_command
from winnow.standalone.settings import StandaloneSettings


def _run(settings: StandaloneSettings) -> None:
    with signals.importing():
        from winnow.standalone.__main__ import run  # noqa: PLC0415 (not for --help)

    run(settings)


standalone = settings_command(StandaloneSettings, _run)
