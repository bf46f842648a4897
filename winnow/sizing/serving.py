"""Unit costs of processes that serve, as `python -m simulation tails` needs them.

Each cost is measured in a process that serves, right after every core has read a passage. So caches
hold what they hold on a busy machine. Milliseconds are processor time of all threads of a process.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt

QUANTILES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
"""The quantiles of a `Drawn`."""
Quantiles = Annotated[
    tuple[NonNegativeFloat, ...], Field(min_length=len(QUANTILES), max_length=len(QUANTILES))
]
"""Quantiles (`QUANTILES`) of measured values, divided by their mean."""


class _Costs(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SpreadCost(_Costs):
    """A time that differs from one measurement to the next."""

    ms: NonNegativeFloat
    """Mean of the measured times."""
    spread: Quantiles


class RetrievalCost(_Costs):
    """Time of a hybrid retrieval from a shard, in its thread."""

    passages: PositiveInt
    """Number of passages of the shard."""
    cost: SpreadCost


class CallCosts(_Costs):
    """Processor time of one end of the calls between a front and its content nodes."""

    call_ms: NonNegativeFloat
    """A call that retrieves from one shard."""
    shard_ms: NonNegativeFloat
    """Each further shard of such a call."""
    read_ms: NonNegativeFloat
    """A call that reads, without reading."""
    spread: Quantiles
    """Spread of these times."""


class Drift(_Costs):
    """How long a machine stays faster or slower, as the other work of its host changes."""

    correlation: float = Field(default=0.0, ge=0, le=1)
    """Correlation of the times of equal work that is done one right after the other."""
    seconds: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Time in which this correlation falls to 1/e."""


class ServingUnits(_Costs):
    """Costs of fronts, content nodes and clients that serve."""

    question_ms: NonNegativeFloat
    """A question at a front, without its calls and without encoding it."""
    front: CallCosts
    """Calls at a front."""
    node: CallCosts
    """Calls at a content node. A call that reads includes the question's lower layers."""
    encode: SpreadCost
    """Encoding a synthetic question."""
    retrieve: tuple[RetrievalCost, ...] = Field(min_length=1)
    read: SpreadCost
    """Reading a synthetic passage of 100 words while the other cores are idle."""
    together: float = Field(gt=0, le=1.5)
    """Speed of a core while all cores read, relative to its speed while the others are idle."""
    drift: Drift = Drift()
    client_ms: NonNegativeFloat
    """A Python client, for a question."""
    message_ms: NonNegativeFloat
    """Time that a message between two processes of a machine takes, in which no core works for it.
    """
    handover_ms: NonNegativeFloat
    """The same for work that is handed to a thread, or its result."""
