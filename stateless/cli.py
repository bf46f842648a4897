"""`winnow front`."""

from winnow import signals
from winnow.settings.command import settings_command
from winnow.stateless.settings import FrontSettings


def _run(settings: FrontSettings) -> None:
    with signals.importing():
        from winnow.stateless.__main__ import run  # noqa: PLC0415 (not for --help)

    run(settings)


front = settings_command(FrontSettings, _run)
