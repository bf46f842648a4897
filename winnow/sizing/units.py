"""Unit costs: the time and space of a question, a passage and a shard on given hardware.

This module has their fields and reads their JSON file. `winnow bench unit-costs` measures unit
costs, and `winnow plan` uses them. Milliseconds are times of one core.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from winnow.errors import ArtefactError
from winnow.sizing.serving import ServingUnits

FORMAT = 1
_SHIPPED_FILE = Path(__file__).with_name("measured.json")
"""The unit costs that come with the code; `docs/sizing.md` names the hardware."""

SPREAD_QUANTILES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
"""The quantiles of a `Spread`."""
Spread = Annotated[
    tuple[PositiveFloat, ...],
    Field(min_length=len(SPREAD_QUANTILES), max_length=len(SPREAD_QUANTILES)),
]
"""Quantiles (`SPREAD_QUANTILES`) of the times of repeated runs, divided by their median."""


class _Costs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LengthCost(_Costs):
    """Time of one run of a model over an input of `tokens` tokens."""

    tokens: PositiveInt
    ms: PositiveFloat


class GraphCost(_Costs):
    """Costs of an HNSW graph with M = 16 and ef_construction = 200, searched with ef = 256."""

    passages: PositiveInt
    dimension: PositiveInt
    search_ms: PositiveFloat
    """Time to find the 100 passages nearest to a question."""
    bytes_each: PositiveFloat
    """Bytes of each passage's vector and links, both in memory and on disk."""


class ShardCost(_Costs):
    """Costs of a shard that a content node serves."""

    passages: PositiveInt
    dimension: PositiveInt
    hybrid_ms: PositiveFloat
    """Time of a hybrid retrieval, by vectors and words."""
    dense_ms: PositiveFloat
    """Time of a dense retrieval, by vectors only."""
    sparse_ms: PositiveFloat
    """Time of a sparse retrieval, by words only."""
    load_ms_each: PositiveFloat
    """Time to verify and load the shard, divided by its passages."""
    write_ms_each: PositiveFloat
    """Total time of all cores to write the shard from encoded passages, divided by its passages."""
    memory_bytes_each: PositiveFloat
    """Memory of each passage, without its vector and links."""
    disk_bytes_each: PositiveFloat
    """Disk space of each passage, without its vector and links in the graph."""


class StatesUnits(_Costs):
    """Costs with precomputed states: indexing then does a part of the reading."""

    read: tuple[LengthCost, ...] = Field(min_length=2)
    """Time to read a passage with precomputed states. Tokens count as in `NodeUnits.read`."""
    together: float = Field(gt=0, le=1.5)
    """`NodeUnits.together` for reads with precomputed states."""
    question: LengthCost
    """Time of the lower layers for a question, once on each node that reads."""
    compute: LengthCost
    """Time to precompute the states of one passage while all cores do so."""
    bytes_a_token: PositiveFloat
    """Disk space of the states of one token."""


class NodeUnits(_Costs):
    """Costs of a content node."""

    read: tuple[LengthCost, ...] = Field(min_length=2)
    """Time to read a passage without precomputed states. Tokens are the sum for question, title and
    text, without special tokens.
    """
    states: StatesUnits | None = None
    """Costs with precomputed states; None for a bundle with a full cross-encoder."""
    mean_tokens: PositiveFloat
    """Mean number of tokens of question, title and text together, over the demo passages."""
    spread: Spread
    """Spread of the times of reads of the same length."""
    together: float = Field(gt=0, le=1.5)
    """Speed of a core while all cores read, relative to its speed while the others are idle."""
    graphs: tuple[GraphCost, ...] = Field(min_length=1)
    shards: tuple[ShardCost, ...] = Field(min_length=1)
    retrieve_spread: Spread
    """Spread of the times of retrievals from one shard."""


class EncodeUnits(_Costs):
    """Costs of the encoder."""

    question: tuple[LengthCost, ...] = Field(min_length=2)
    passage: LengthCost
    """Time to encode a passage of mean length while all cores encode."""


class FrontUnits(_Costs):
    """Time of a front node's event loop, without encoding."""

    question_ms: float = Field(ge=0)
    """Time per question, without the time for its shards."""
    shard_ms: float = Field(ge=0)
    """Time per shard that retrieves: for the call, the reply, and the choice of passages."""
    pair_us: float = Field(ge=0)
    """Microseconds per pair of shards: a cost that grows with the square of their number."""
    read_ms: float = Field(ge=0)
    """Time per shard that reads."""


class ProcessUnits(_Costs):
    """Costs of processes, without their models and passages."""

    call_ms: float = Field(ge=0)
    """Time of a content node per call, without retrieving and reading."""
    client_ms: float = Field(ge=0)
    """Time of a Python client per question."""
    node_bytes: PositiveFloat
    """Memory of a content node without passages."""
    front_bytes: PositiveFloat
    """Memory of a front node."""


class UnitCosts(_Costs):
    """All unit costs, and the hardware and bundle of their measurement."""

    format: int = Field(default=FORMAT, ge=FORMAT, le=FORMAT)
    processor: str
    cores: PositiveInt
    bundle: str
    encode: EncodeUnits
    node: NodeUnits
    front: FrontUnits
    process: ProcessUnits
    serving: ServingUnits | None = None
    """Costs of processes that serve; None if they were not measured."""


def shipped_unit_costs() -> UnitCosts:
    """Returns the unit costs that come with the code."""
    return read_unit_costs(_SHIPPED_FILE)


def read_unit_costs(path: Path) -> UnitCosts:
    """Reads unit costs. Raises ArtefactError if the file cannot be read, or has no unit costs."""
    try:
        return UnitCosts.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise ArtefactError(
            f"{path} has no unit costs: {field}: {first['msg']}; measure them with "
            "`winnow bench unit-costs --out FILE`"
        ) from error
