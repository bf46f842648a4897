"""The heads of an encoder group, opened: what `local_heads` and `placed_heads` have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from winnow.heads.heads import Heads
from winnow.heads.run import BeginEncoderThreadRun, run_no_heads
from winnow.stateless.composing.encoders import OpenEncoder
from winnow.stateless.heads.encoder_groups import Memory


@dataclass(frozen=True, slots=True)
class OpenHeads:
    """The heads of an encoder group, and what they take in this process."""

    heads: Heads
    memory: Callable[[], Memory] = Memory
    ahead: BeginEncoderThreadRun = run_no_heads


class HeadsOpener(Protocol):
    """Opens the heads of each encoder group."""

    def open(self, name: str, encoder: OpenEncoder, store: str) -> OpenHeads:
        """The heads of the encoder group of that name; the front closes them.

        Args:
            name: of the encoder group.
            encoder: whose states the heads are given.
            store: where they are published; empty where they are on servers.

        """
