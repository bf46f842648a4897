"""`winnow heads serve`."""

from winnow import signals
from winnow.head_node.settings import HeadNodeSettings
from winnow.settings.command import settings_command


def _run(settings: HeadNodeSettings) -> None:
    with signals.importing():
        from winnow.head_node.__main__ import run  # noqa: PLC0415 (not for --help)

    run(settings)


serve = settings_command(HeadNodeSettings, _run)
