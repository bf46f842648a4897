"""Unit costs: what a question, a passage and a shard cost on some hardware.

This module has the figures and their file. `winnow bench units` measures them, and `winnow plan`
uses them. Milliseconds are of one core.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from winnow.errors import ArtefactError

FORMAT = 1
MEASURED = Path(__file__).with_name("measured.json")
"""The unit costs that come with the code; `docs/sizing.md` says where they were measured."""


SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
"""The shares of the quantiles in a `Spread`."""
Spread = Annotated[tuple[PositiveFloat, ...], Field(min_length=len(SHARES), max_length=len(SHARES))]
"""The spread of repetitions: quantiles, at `SHARES`, of their times relative to the median."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LengthCost(_Part):
    """One run of a model over an input of this length."""

    tokens: PositiveInt
    ms: PositiveFloat


class GraphCost(_Part):
    """An HNSW graph: M = 16, ef_construction = 200, searched with ef = 256."""

    passages: PositiveInt
    dimension: PositiveInt
    search_ms: PositiveFloat
    """Time to find the hundred nearest."""
    bytes_each: PositiveFloat
    """Bytes of a passage, in memory and on disk: its vector and its links."""


class ShardCost(_Part):
    """A shard, as a node serves it."""

    passages: PositiveInt
    dimension: PositiveInt
    hybrid_ms: PositiveFloat
    """Time to retrieve for a question by vectors and words."""
    dense_ms: PositiveFloat
    """Time to retrieve by vectors alone."""
    sparse_ms: PositiveFloat
    """Time to retrieve by words alone."""
    load_ms_each: PositiveFloat
    """Time to verify and load the shard, for each passage."""
    write_ms_each: PositiveFloat
    """Time of all cores together to write the shard from encoded passages, for each passage."""
    memory_bytes_each: PositiveFloat
    """Memory of a passage besides its vector and its links."""
    disk_bytes_each: PositiveFloat
    """Disk of a passage besides its vector and its links in the graph."""


class StatesUnits(_Part):
    """Precomputed states: part of the reading is done when a passage is indexed."""

    read: tuple[LengthCost, ...] = Field(min_length=2)
    """Time of a read with precomputed states; tokens as in `NodeUnits.read`."""
    together: float = Field(gt=0, le=1.5)
    """As in `NodeUnits`, for such reads."""
    question: LengthCost
    """Time for the lower layers of a question, once on each node that reads."""
    compute: LengthCost
    """Time to precompute the states of a passage, while all cores do so."""
    bytes_a_token: PositiveFloat
    """Bytes on disk."""


class NodeUnits(_Part):
    """A content node."""

    read: tuple[LengthCost, ...] = Field(min_length=2)
    """Time to read a passage without precomputed states. Tokens are those of question, title and
    text together, without special ones.
    """
    states: StatesUnits | None = None
    """None for a bundle with a full cross-encoder."""
    mean_tokens: PositiveFloat
    """Mean tokens of such an input, over the demo passages."""
    spread: Spread
    """Spread of reads of one length."""
    together: float = Field(gt=0, le=1.5)
    """Speed of a core while all cores read, as a share of its speed while the others rest."""
    graphs: tuple[GraphCost, ...] = Field(min_length=1)
    shards: tuple[ShardCost, ...] = Field(min_length=1)
    retrieve_spread: Spread
    """Spread of retrievals from one shard."""


class EncodeUnits(_Part):
    """The encoder."""

    question: tuple[LengthCost, ...] = Field(min_length=2)
    passage: LengthCost
    """Time for a passage of mean length, while all cores encode."""


class FrontUnits(_Part):
    """The event loop of a front node, without encoding."""

    question_ms: float = Field(ge=0)
    """Time for each question, besides that for shards."""
    shard_ms: float = Field(ge=0)
    """Time for each shard that retrieves: a call, its reply, and its part of choosing."""
    pair_us: float = Field(ge=0)
    """Microseconds for each pair of shards: the part that grows with the square of their number."""
    read_ms: float = Field(ge=0)
    """Time for each shard that reads."""


class ProcessUnits(_Part):
    """Costs of processes besides their models and passages."""

    call_ms: float = Field(ge=0)
    """Time of a content node for each call, besides retrieving and reading."""
    client_ms: float = Field(ge=0)
    """Time of a Python client for each question."""
    node_bytes: PositiveFloat
    """Memory of a content node without passages."""
    front_bytes: PositiveFloat
    """Memory of a front node."""


class Units(_Part):
    """All unit costs, and where they were measured."""

    format: int = Field(default=FORMAT, ge=FORMAT, le=FORMAT)
    processor: str
    cores: PositiveInt
    bundle: str
    encode: EncodeUnits
    node: NodeUnits
    front: FrontUnits
    process: ProcessUnits


def shipped() -> Units:
    """The unit costs that come with the code."""
    return read_units(MEASURED)


def read_units(path: Path) -> Units:
    """Reads unit costs. Raises ArtefactError if the file cannot be read, or has no unit costs."""
    try:
        return Units.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ArtefactError(
            f"{path} has no unit costs: {place}: {first['msg']}; measure them with "
            "`winnow bench units --out FILE`"
        ) from error
