"""LangChain's types of errors for those of Winnow."""

from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelInvalidRequestError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)

from winnow.client.frameworks import ErrorTypes
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    WinnowError,
)

ERRORS: ErrorTypes = {
    InvalidRequestError: ModelInvalidRequestError,
    OverloadedError: ModelRateLimitError,
    DeadlineExceededError: ModelTimeoutError,
    UnavailableError: ModelConnectionError,
    UnauthenticatedError: ModelAuthenticationError,
    PermissionDeniedError: ModelPermissionDeniedError,
    WinnowError: ModelAPIError,
}
"""LangChain retries those of them that are retryable."""
