"""Graphs of hnswlib, which may be missing: it comes as source, and needs a C++ compiler.

A shard of at most `GRAPHLESS_UP_TO` passages needs no graph.
"""

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.domain.shard import GRAPHLESS_UP_TO
from winnow.errors import ArtefactError
from winnow.packaged import extra

try:
    import hnswlib
except ImportError:
    hnswlib = None
module: Any = hnswlib
"""The module `hnswlib`; None if it is not installed."""

SPACE: Final = "l2"
INSTALL_HNSWLIB = (
    f"{extra('graph')}; it needs a C++ compiler and Python's headers (Debian: apt install g++ "
    "python3-dev; Fedora: dnf install gcc-c++ python3-devel; Alpine: apk add g++ python3-dev; "
    "macOS: xcode-select --install)"
)
"""How to install hnswlib."""


class Graph(Protocol):
    """The methods of `hnswlib.Index` that Winnow calls. Labels are row numbers."""

    def init_index(self, max_elements: int, M: int, ef_construction: int) -> None: ...  # noqa: N803

    def load_index(self, path_to_index: str, max_elements: int = 0) -> None: ...

    def save_index(self, path_to_index: str) -> None: ...

    def index_file_size(self) -> int: ...

    def get_current_count(self) -> int: ...

    def add_items(
        self, data: NDArray[np.float32], ids: NDArray[np.integer], num_threads: int
    ) -> None: ...

    def mark_deleted(self, label: int) -> None: ...

    def set_ef(self, ef: int) -> None: ...

    def set_num_threads(self, num_threads: int) -> None: ...

    def knn_query(
        self, data: NDArray[np.float32], k: int, num_threads: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.float32]]: ...


def can_use_graphs() -> bool:
    """Whether hnswlib is installed."""
    return module is not None


def new_graph(dimension: int) -> Graph:
    """Returns a graph without vectors; raises ArtefactError if hnswlib is not installed."""
    if module is None:
        raise ArtefactError(f"a graph needs hnswlib, which is not installed: {INSTALL_HNSWLIB}")
    graph: Graph = module.Index(space=SPACE, dim=dimension)
    return graph


def check_graphless(what: str, passages: int, alternative: str) -> None:
    """Raises ArtefactError if a shard of `passages` passages needs hnswlib, which is missing.

    `what` names the shard in the message, and `alternative` what to do without hnswlib.
    """
    if passages > GRAPHLESS_UP_TO and not can_use_graphs():
        raise ArtefactError(
            f"{what} has {passages:,} passages, and a shard of more than {GRAPHLESS_UP_TO:,} needs "
            f"hnswlib, which is not installed: {INSTALL_HNSWLIB}; or {alternative}"
        )
