"""Saving and restoring a training run.

A checkpoint is one file, written aside and renamed, so that an interruption leaves the old or the
new one and never half of one.
"""

import os
from pathlib import Path
from typing import Any

import torch


def save(path: Path, state: dict[str, Any]) -> None:
    """Writes `state` (tensors, numbers, strings and containers of them) durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".partial")
    with aside.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def load(path: Path) -> dict[str, Any] | None:
    """Reads a checkpoint; None if there is none."""
    if not path.is_file():
        return None
    state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    return state


def finished(path: Path) -> dict[str, Any] | None:
    """Returns the checkpoint of a run that came to its end, or none."""
    state = load(path)
    return state if state is not None and state["step"] >= state.get("steps", 0) else None
