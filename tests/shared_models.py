"""Opens each tokenizer and each model of a bundle once in a process of tests.

They keep no state between runs, and opening them would take most of the time of many tests.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime
import pytest
import tokenizers
from whole_bundle import WHOLE

from winnow.inference import onnx
from winnow.packaged import default_bundle
from winnow.text import tokenizer

_BUNDLES = (default_bundle(), WHOLE)
_LARGE = 1_000_000
"""Bytes of a model that is surely a bundle's: those of tests are smaller."""


@contextlib.contextmanager
def opened_once() -> Iterator[None]:
    """Shares sessions and tokenizers of bundles from now on."""
    parse = _Once(tokenizers.Tokenizer.from_file)
    open_session = _Once(onnxruntime.InferenceSession)

    def parsed(path: str) -> Any:
        return parse(Path(path).parent in _BUNDLES and path, path)

    def session(model: str | bytes, options: Any, providers: list[Any]) -> Any:
        if isinstance(model, str):
            shared: Any = Path(model).parent in _BUNDLES and model
        else:
            shared = len(model) > _LARGE and hash(model)
        key = shared and (shared, options.intra_op_num_threads, str(providers))
        return open_session(key, model, options, providers=providers)

    with pytest.MonkeyPatch.context() as patch:
        own = SimpleNamespace(**{**vars(onnxruntime), "InferenceSession": session})
        patch.setattr(onnx, "onnxruntime", own)
        patch.setattr(
            tokenizer, "tokenizers", SimpleNamespace(Tokenizer=SimpleNamespace(from_file=parsed))
        )
        yield


class _Once:
    """Calls a function once for each key; always for a key that is false."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._results: dict[Any, Any] = {}

    def __call__(self, key: Any, *arguments: Any, **named: Any) -> Any:
        if not key:
            return self._call(*arguments, **named)
        if key not in self._results:
            self._results[key] = self._call(*arguments, **named)
        return self._results[key]
