"""Composes the indexes of a content node that follows a catalog."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle, load_bundle
from winnow.catalog import CatalogFile
from winnow.content_node.composing.assigned import assigned_shards, open_assigned
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.node_indexes import (
    CatalogAssignment,
    NodeIndexes,
    index_directory,
)
from winnow.content_node.composing.parts import (
    IndexModels,
    NodeParts,
    open_models,
    open_node_parts,
    parts_of_index,
)
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.served_indexes import ServedIndexes
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.startup_checks import check_reader, shards_to_serve
from winnow.content_node.transfer.remote import PeerNodes
from winnow.deadline import Sleep
from winnow.domain.catalog import CatalogIndex
from winnow.security.peers import PeerChannels
from winnow.telemetry.labelled import LabelledRegistries
from winnow.telemetry.runtimes import RuntimeMetrics

SetServing = Callable[[bool], Awaitable[None]]


class NodeHealth:
    """The health of a node: it serves while any of its indexes does."""

    def __init__(self, set_serving: SetServing) -> None:
        """`set_serving` sets the health of the process."""
        self._set_serving = set_serving
        self._serving: dict[str, bool] = {}
        self._is_serving = True
        """What was set last."""

    def add_index(self, index_id: str) -> None:
        """Adds an index, which is served until `set_index` says otherwise."""
        self._serving[index_id] = True

    def remove_index(self, index_id: str) -> None:
        """Removes an index."""
        self._serving.pop(index_id, None)

    async def set_index(self, index_id: str, serving: bool) -> None:
        """Sets whether an index is served."""
        self._serving[index_id] = serving
        await self._set()

    async def update(self) -> None:
        """Ends NOT_SERVING after indexes were added or removed, if the node serves again."""
        if not self._is_serving:
            await self._set()

    async def _set(self) -> None:
        # a node without indexes waits for the first one
        self._is_serving = any(self._serving.values()) or not self._serving
        await self._set_serving(self._is_serving)


class NamedIndexOpener:
    """Opens named indexes. Those with the same bundle share its models."""

    def __init__(
        self,
        settings: NodeSettings,
        parts: NodeParts,
        *,
        labelled: LabelledRegistries,
        health: NodeHealth,
        peers: PeerChannels,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`parts` are those of the node. `labelled` gets the metrics of each index by its name."""
        self._settings, self._parts, self._labelled = settings, parts, labelled
        self._health, self._peers, self._sleep = health, peers, sleep
        default = IndexModels(parts.bundle, parts.reader, parts.passage_tokens)
        self._default = parts.bundle.manifest.fingerprint
        self._models = {self._default: default}
        """The models by the fingerprint of their bundle: the default ones, and those in use."""
        self._bundles = {"": parts.bundle}
        self._uses: dict[str, str] = {}
        """The fingerprint of the bundle of each open index, by its id."""
        self._registries: dict[str, CollectorRegistry] = {}
        """The metrics of each open index, by its id."""

    async def open(
        self, name: str, index: CatalogIndex, assignment: CatalogAssignment
    ) -> AssignedShards:
        """Opens an index without loading it.

        Raises ArtefactError if its bundle is missing or damaged, and SettingsError if the bundle's
        reader cannot run with the settings of the node.
        """
        models = await self._models_of(index.bundle)
        self._uses[index.index_id] = models.bundle.manifest.fingerprint
        assert self._settings.data is not None  # it has the shards
        settings = self._settings.model_copy(
            update={
                "data": index_directory(self._settings.data, index.index_id),
                "pull": index.snapshots,
            }
        )
        self._labelled.drop(name)  # metrics of a dropped index with the same name
        registry = self._labelled.of(name)
        self._registries[index.index_id] = registry
        self._health.add_index(index.index_id)
        await self._health.update()
        addresses: dict[str, str] = {}
        peer_nodes = PeerNodes(
            settings.name,
            lambda node: addresses.get(node, ""),
            self._peers,
            index_id=index.index_id,
        )
        parts = parts_of_index(
            self._parts, settings, models, NodeMetrics(registry), peer_nodes=peer_nodes
        )
        return assigned_shards(
            settings,
            parts,
            registry,
            assignment,
            addresses=addresses,
            set_serving=partial(self._health.set_index, index.index_id),
            writes=assignment.writes,
            sleep=self._sleep,
        )

    def rename(self, index_id: str, name: str) -> None:
        """Exports the metrics of an open index under another name."""
        self._labelled.rename(self._registries[index_id], name)

    async def forget(self, index_id: str) -> None:
        """Removes the metrics and the health of a closed index, and models that no index uses."""
        self._uses.pop(index_id, None)
        used = {self._default, *self._uses.values()}
        self._models = {key: each for key, each in self._models.items() if key in used}
        self._bundles = {
            path: each for path, each in self._bundles.items() if each.manifest.fingerprint in used
        }
        if index_id in self._registries:
            self._labelled.remove(self._registries.pop(index_id))
        self._health.remove_index(index_id)
        await self._health.update()

    async def _models_of(self, directory: str) -> IndexModels:
        if directory not in self._bundles:
            bundle = await asyncio.to_thread(load_bundle, Path(directory))
            check_reader(self._settings, bundle)
            self._bundles[directory] = bundle
        bundle = self._bundles[directory]
        key = bundle.manifest.fingerprint
        if key not in self._models:
            self._models[key] = open_models(self._parts, bundle)
        return self._models[key]


def open_node_indexes(
    settings: NodeSettings,
    bundle: Bundle,
    registry: CollectorRegistry,
    *,
    runtimes: RuntimeMetrics,
    set_serving: SetServing,
    peers: PeerChannels,
    sleep: Sleep = asyncio.sleep,
) -> tuple[NodeIndexes, NodeParts]:
    """Returns the indexes of a node that follows a catalog, and the parts that they share.

    The caller closes the indexes, and the pool of the parts. Raises as `open_assigned`.
    """
    labelled, health = LabelledRegistries(registry, "index"), NodeHealth(set_serving)
    own, set_default = labelled.of(""), partial(health.set_index, "")
    default: RunningShards | AssignedShards | None = None
    if settings.assignment:
        default, parts = open_assigned(
            settings,
            bundle,
            own,
            runtimes=runtimes,
            set_serving=set_default,
            peers=peers,
            sleep=sleep,
        )
    elif settings.shard or settings.shards is not None:
        directories = shards_to_serve(settings)
        parts = open_node_parts(settings, bundle, own, runtimes, shards=len(directories))
        default = RunningShards(directories, parts, own, set_default)
    else:
        parts = open_node_parts(settings, bundle, own, runtimes, shards=1)
    if default is not None:
        health.add_index("")
    without_shards = partial(
        ServedShards, joint=parts.joint, node=settings.name, address=settings.peer_address
    )
    nothing, unopened = without_shards(), without_shards(is_starting=True)
    opener = NamedIndexOpener(
        settings, parts, labelled=labelled, health=health, peers=peers, sleep=sleep
    )
    watches_files = settings.peer_ca is not None and not settings.assignment
    indexes = NodeIndexes(
        settings,
        CatalogFile(settings.indexes),
        opener,
        served=ServedIndexes(default.served if default is not None else nothing, nothing, unopened),
        default=default,
        watch_files=peers.watch_files if watches_files else None,
        sleep=sleep,
    )
    return indexes, parts
