"""Saves and loads checkpoints of training runs.

A checkpoint is one file. It is replaced atomically, so an interruption never damages it.
"""

import os
from pathlib import Path
from typing import Any

import torch

MEAN = "mean"
"""Key in a finished checkpoint for averaged weights, which replace the trained weights in use."""


def save(path: Path, state: dict[str, Any]) -> None:
    """Writes `state` durably. It may contain tensors, numbers, strings and containers of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def load(path: Path) -> dict[str, Any] | None:
    """Reads a checkpoint, or returns None if the file is missing."""
    if not path.is_file():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    return state


def load_finished(path: Path) -> dict[str, Any] | None:
    """Reads the checkpoint of a finished run, or returns None if it is unfinished or missing."""
    state = load(path)
    return state if state is not None and state["step"] >= state.get("steps", 0) else None
