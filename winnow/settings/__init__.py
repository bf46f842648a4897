"""Settings: one declaration is flag, variable, file key and help."""

from winnow.settings.command import settings_command
from winnow.settings.source import Settings

__all__ = ["Settings", "settings_command"]
