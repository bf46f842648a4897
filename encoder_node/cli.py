"""`winnow encoder`."""

from winnow.encoder_node.settings import EncoderSettings
from winnow.settings.command import service_command

encoder = service_command(EncoderSettings, "winnow.encoder_node.__main__")
