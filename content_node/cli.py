"""`winnow node`."""

from winnow import signals
from winnow.content_node.settings import NodeSettings
from winnow.settings.command import settings_command


def _run(settings: NodeSettings) -> None:
    with signals.importing():
        from winnow.content_node.__main__ import run  # noqa: PLC0415 (not for --help)

    run(settings)


node = settings_command(NodeSettings, _run)
