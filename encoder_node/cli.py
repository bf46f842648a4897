"""`winnow encoder`."""

from winnow.encoder_node.__main__ import run
from winnow.encoder_node.settings import EncoderSettings
from winnow.settings.command import settings_command

encoder = settings_command(EncoderSettings, run)
