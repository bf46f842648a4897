"""What the packages in `integrations/` share: clients, metadata, filters and errors."""

from winnow.client.frameworks.errors import BUILTIN_ERRORS, ErrorTypes, framework_errors
from winnow.client.frameworks.filters import combination, comparison
from winnow.client.frameworks.lazy_clients import TOKEN_VARIABLE, LazyClients
from winnow.client.frameworks.metadata import passage_metadata, warn_if_incomplete

__all__ = [
    "BUILTIN_ERRORS",
    "TOKEN_VARIABLE",
    "ErrorTypes",
    "LazyClients",
    "combination",
    "comparison",
    "framework_errors",
    "passage_metadata",
    "warn_if_incomplete",
]
