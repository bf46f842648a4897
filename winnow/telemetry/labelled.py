"""Exports the metrics of several parts of a process, such as shards, with a label for the part."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample


class LabelledRegistries(Collector):
    """A registry for each part. All are exported through one registry, with an additional label.

    The part with an empty name gets no label. Its metrics may have the names of those of other
    parts.
    """

    def __init__(self, registry: CollectorRegistry, label: str) -> None:
        """`registry`: exports the parts; `label`: name of the additional label."""
        self._label = label
        self._parts: dict[str, CollectorRegistry] = {}
        registry.register(self)

    def of(self, part: str) -> CollectorRegistry:
        """Returns the registry of a part, and creates it if needed. `part` is the label's value."""
        return self._parts.setdefault(part, CollectorRegistry())

    def drop(self, part: str, registry: CollectorRegistry | None = None) -> None:
        """Stops exporting the metrics of a part, such as a shard that was closed.

        With `registry`, only if the part still has this registry, and not that of a later part with
        the same name.
        """
        if registry is None or self._parts.get(part) is registry:
            self._parts.pop(part, None)

    def remove(self, registry: CollectorRegistry) -> None:
        """Stops exporting a registry, also if its part was renamed."""
        for part, own in list(self._parts.items()):
            if own is registry:
                del self._parts[part]

    def rename(self, registry: CollectorRegistry, part: str) -> None:
        """Exports a registry as that of another part. Replaces a registry that this part had."""
        self.remove(registry)
        self._parts[part] = registry

    def collect(self) -> Iterator[Metric]:
        """Yields one metric family for each name, with the samples of all parts."""
        families: dict[str, Metric] = {}
        for part, registry in list(self._parts.items()):
            for family in registry.collect():
                shared = families.setdefault(
                    family.name, Metric(family.name, family.documentation, family.type, family.unit)
                )
                shared.samples += [self._labelled(sample, part) for sample in family.samples]
        yield from families.values()

    def _labelled(self, sample: Sample, part: str) -> Sample:
        if not part:
            return sample
        return sample._replace(labels={self._label: part, **sample.labels})
