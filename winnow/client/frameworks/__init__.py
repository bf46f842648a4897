"""What the packages in `integrations/` share: clients, metadata, filters, readings and errors."""

from winnow.client.frameworks.errors import BUILTIN_ERRORS, ErrorTypes, framework_errors
from winnow.client.frameworks.filters import combination, comparison
from winnow.client.frameworks.lazy_clients import TOKEN_VARIABLE, LazyClients
from winnow.client.frameworks.metadata import passage_metadata, warn_if_incomplete
from winnow.client.frameworks.reading import most_relevant, reading_metadata, text_to_read

__all__ = [
    "BUILTIN_ERRORS",
    "TOKEN_VARIABLE",
    "ErrorTypes",
    "LazyClients",
    "combination",
    "comparison",
    "framework_errors",
    "most_relevant",
    "passage_metadata",
    "reading_metadata",
    "text_to_read",
    "warn_if_incomplete",
]
