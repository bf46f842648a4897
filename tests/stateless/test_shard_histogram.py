"""The histogram of the stages of many shards."""

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.openmetrics.exposition import generate_latest

from winnow.domain.answered import ShardTimings
from winnow.stateless.shard_histogram import ShardHistogram

BUCKETS = (0.1, 1.0)
TIMINGS = [
    {0: ShardTimings(0.05, 0.1, 2.0), 7: ShardTimings(0.5, 0.6, 0.7)},
    {7: ShardTimings(3.0, 0.0, 0.1)},
]


def test_its_series_are_those_of_the_client_of_prometheus() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    histogram = ShardHistogram("seconds", "Time", BUCKETS)
    ours.register(histogram)
    reference = Histogram("seconds", "Time", ("shard", "stage"), buckets=BUCKETS, registry=theirs)
    for timings in TIMINGS:
        histogram.observe(timings)
        for shard, spent in timings.items():
            for stage in ("queue", "retrieve", "read"):
                reference.labels(str(shard), stage).observe(getattr(spent, stage))
    samples = [
        {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in registry.collect()
            for sample in family.samples
            if not sample.name.endswith("_created")
        }
        for registry in (ours, theirs)
    ]
    assert samples[0] == samples[1]


def test_a_bucket_links_to_the_last_trace_in_it() -> None:
    registry = CollectorRegistry()
    histogram = ShardHistogram("seconds", "Time", BUCKETS)
    registry.register(histogram)
    histogram.observe(TIMINGS[0], {"trace_id": "a"})
    histogram.observe(TIMINGS[1], {"trace_id": "b"})
    lines = generate_latest(registry).decode().splitlines()  # type: ignore[no-untyped-call]
    (line,) = [each for each in lines if 'le="0.1",shard="7",stage="read"' in each]
    assert 'trace_id="b"' in line
