"""Unit costs: what a question, a passage and a shard cost on some hardware.

Knows figures and their file; does not know how they are measured (`winnow bench units`) or what
follows from them (`winnow plan`). Milliseconds are of one core.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from winnow.errors import ArtefactError

FORMAT = 1
MEASURED = Path(__file__).with_name("measured.json")
"""The units that come with the code; `docs/sizing.md` says where they were measured."""


SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
"""Of the quantiles by which a spread is told."""
Spread = Annotated[tuple[PositiveFloat, ...], Field(min_length=len(SHARES), max_length=len(SHARES))]
"""How repetitions differ: quantiles, at `SHARES`, of their time by the median."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LengthCost(_Part):
    """One run of a model over an input of this length."""

    tokens: PositiveInt
    ms: PositiveFloat


class GraphCost(_Part):
    """An HNSW graph over so many vectors: M = 16, ef_construction = 200, searched with ef = 256."""

    passages: PositiveInt
    dimension: PositiveInt
    search_ms: PositiveFloat
    """To find the hundred nearest."""
    bytes_each: PositiveFloat
    """Of memory, and of disk, for each passage: its vector and its links."""


class ShardCost(_Part):
    """A whole shard, as a node serves it."""

    passages: PositiveInt
    dimension: PositiveInt
    hybrid_ms: PositiveFloat
    """To retrieve for a question by encodings and words."""
    dense_ms: PositiveFloat
    """The same by encodings alone."""
    sparse_ms: PositiveFloat
    """The same by words alone."""
    load_ms_each: PositiveFloat
    """To verify and load it, for each passage."""
    write_ms_each: PositiveFloat
    """Of all cores together, to write it once its passages are encoded, for each passage."""
    memory_bytes_each: PositiveFloat
    """Of memory, for each passage, beside its vector and its links."""
    disk_bytes_each: PositiveFloat
    """Of disk, for each passage, beside its vector and its links in the graph."""


class StatesUnits(_Part):
    """Half of the reading, done when a passage is indexed."""

    read: tuple[LengthCost, ...] = Field(min_length=2)
    """What is left to do of a read; tokens as of `NodeUnits.read`."""
    together: float = Field(gt=0, le=1.5)
    """As of `NodeUnits`, for such reads."""
    question: LengthCost
    """A question's own half, once for each node that reads; with states or without."""
    compute: LengthCost
    """To compute the states of a passage, while all cores do."""
    bytes_a_token: PositiveFloat
    """Of disk."""


class NodeUnits(_Part):
    """A content node."""

    read: tuple[LengthCost, ...] = Field(min_length=2)
    """To read a passage, all of it; tokens are of question, title and text together, without
    special ones.
    """
    states: StatesUnits | None = None
    """None for a bundle whose reader sees question and passage together in every layer."""
    mean_tokens: PositiveFloat
    """Of such an input, over the demo passages."""
    spread: Spread
    """Of reads of one length."""
    together: float = Field(gt=0, le=1.5)
    """Speed of a core while all cores read, as a share of its speed while the others rest."""
    graphs: tuple[GraphCost, ...] = Field(min_length=1)
    shards: tuple[ShardCost, ...] = Field(min_length=1)
    retrieve_spread: Spread
    """Of retrievals from one shard."""


class EncodeUnits(_Part):
    """The encoder."""

    question: tuple[LengthCost, ...] = Field(min_length=2)
    passage: LengthCost
    """Of a passage of mean length, while all cores encode."""


class FrontUnits(_Part):
    """The event loop of a front node, without encoding."""

    question_ms: float = Field(ge=0)
    """For each question, whatever the shards."""
    shard_ms: float = Field(ge=0)
    """For each shard that retrieves: a call, its reply, and its part of choosing."""
    pair_us: float = Field(ge=0)
    """Microseconds for each pair of shards: what grows faster than their number."""
    read_ms: float = Field(ge=0)
    """For each shard that reads."""


class ProcessUnits(_Part):
    """Processes beside what they do."""

    call_ms: float = Field(ge=0)
    """Of a content node for each call, beside retrieving and reading."""
    client_ms: float = Field(ge=0)
    """Of a Python client for each question."""
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
    """Those that come with the code."""
    return read_units(MEASURED)


def read_units(path: Path) -> Units:
    """Reads unit costs.

    Raises:
        ArtefactError: the file cannot be read, or holds none.

    """
    try:
        return Units.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ArtefactError(
            f"{path} holds no unit costs: {place}: {first['msg']}; measure them with "
            "`winnow bench units --out FILE`"
        ) from error
