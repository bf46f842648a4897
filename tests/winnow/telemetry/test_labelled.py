"""Metrics of several parts of a process, with a label for each part."""

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from winnow.telemetry.labelled import LabelledRegistries


def test_parts_share_families_and_a_late_drop_spares_a_later_part_of_the_same_name() -> None:
    """The part without a name has no label: its families are not exported twice."""
    registry = CollectorRegistry()
    parts = LabelledRegistries(registry, "index")
    for value, name in enumerate(("", "docs")):
        Gauge("shards", "Number of shards", registry=parts.of(name)).set(value)
    lines = generate_latest(registry).decode().splitlines()
    assert lines[1:] == ["# TYPE shards gauge", "shards 0.0", 'shards{index="docs"} 1.0']
    first = parts.of("docs")
    parts.drop("docs")
    Gauge("shards", "Number of shards", registry=parts.of("docs")).set(2)
    parts.drop("docs", first)
    assert registry.get_sample_value("shards", {"index": "docs"}) == 2
    parts.drop("docs", parts.of("docs"))
    assert registry.get_sample_value("shards", {"index": "docs"}) is None


def test_a_renamed_part_leaves_its_name_to_another_one() -> None:
    registry = CollectorRegistry()
    parts = LabelledRegistries(registry, "index")
    first = parts.of("docs")
    Gauge("shards", "Number of shards", registry=first).set(1)
    parts.rename(first, "docs-1")
    parts.drop("docs")
    Gauge("shards", "Number of shards", registry=parts.of("docs")).set(2)
    values = {each: registry.get_sample_value("shards", {"index": each}) for each in parts._parts}
    assert values == {"docs-1": 1, "docs": 2}
    parts.remove(first)
    assert parts._parts.keys() == {"docs"}
