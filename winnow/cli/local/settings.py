"""Settings of `winnow up`, a cluster on this machine."""

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from winnow.address import Address
from winnow.cli.local.ports import consecutive_addresses, with_fallback_port
from winnow.domain.shard import MAX_SHARDS
from winnow.packaged import default_bundle
from winnow.settings.errors import SettingsError
from winnow.settings.names import variable
from winnow.settings.source import Settings, configured_value
from winnow.settings.values import (
    BUNDLE_HELP,
    BundleDirectory,
    ListenAddress,
    OptionalListenAddress,
)

_FRONT_ADDRESSES = ("health_listen", "metrics_listen", "feed_listen", "shards_listen")
"""Settings of the front node for addresses that it listens on beside its main port and HTTP."""


def configured_address(table: str, field: str, file: Path | None) -> str:
    """The address that a setting of another kind of process has; empty for none.

    Raises SettingsError if it is not an address.
    """
    listen = configured_value(table, field, file)
    try:
        return str(Address.parse(str(listen))) if listen else ""
    except ValueError as error:
        setting = f"{field} of [{table}] (or {variable(table, field)})"
        raise SettingsError(f"{setting}: {error}") from error


class UpSettings(Settings):
    """Serve an index on this machine, in the foreground, until Ctrl-C.

    Examples:
      winnow up --documents FOLDER
      winnow up --index index --listen 127.0.0.1:8080

    By default, one process runs the front node and all shards. With --nodes N, the shards are
    divided among N content nodes, each a process on a free port. The front node and the shards also
    read their own settings: the variables WINNOW_FRONT_… and WINNOW_NODE_…, and the tables 'front'
    and 'node' of the --config file. The options below take precedence. Content nodes share the
    cores unless 'threads' or 'reader_threads' is set for them. At a terminal, logs are text unless
    log_format is set.

    """

    table: ClassVar[str] = "up"

    index: Path | None = Field(
        None,
        description="Directory of the index. Required without --documents, whose default is "
        ".winnow/index in that folder.",
    )
    documents: Path | None = Field(
        None,
        description="Folder of documents to index and serve: PDF, Word, PowerPoint, EPUB, HTML, "
        "Markdown, reStructuredText and plain text. The index follows the folder's changes. Needs "
        "the extra `documents`.",
    )
    bundle: BundleDirectory = Field(default_factory=default_bundle, description=BUNDLE_HELP)
    listen: ListenAddress = Field(
        "127.0.0.1:8080", description="HOST:PORT of the front node; port 0 for any free one."
    )
    feed_listen: OptionalListenAddress = Field(
        "",
        description="HOST:PORT that accepts passages and deletions; empty for none. Everyone who "
        "can reach this port can change the index.",
    )
    http_listen: OptionalListenAddress = Field(
        "127.0.0.1:8088",
        description="HOST:PORT to serve HTTP on; port 0 for any free one, empty for none. If the "
        "default port is in use, a free port is chosen.",
    )
    http_feed: bool = Field(
        False,
        description="Accept passages, deletions and documents over HTTP, too, so that the page can "
        "add documents. Needs keys, unless HTTP listens on 127.0.0.1.",
    )
    heads: str = Field(
        "",
        description="Store of heads to predict with, a directory or a URL; empty for none.",
    )
    nodes: int = Field(
        0,
        ge=0,
        le=MAX_SHARDS,
        description="Number of content nodes that share the shards, each a process. 0 runs "
        "everything in one process, which is faster on one machine.",
    )
    replicas: int = Field(
        1, ge=1, le=16, description="Number of content nodes per shard; needs --nodes."
    )
    metrics_listen: OptionalListenAddress = Field(
        "", description="HOST:PORT of the front node's Prometheus endpoint; empty for none."
    )

    @property
    def directory(self) -> Path:
        """The directory of the index."""
        if self.index is not None:
            return self.index
        assert self.documents is not None, "checked when the settings are loaded"
        return self.documents / ".winnow" / "index"

    @property
    def feed(self) -> str:
        """The address for feeding; a free port of this machine if no caller needs to know it."""
        is_needed = self.documents is not None or self.http_feed
        return self.feed_listen or ("127.0.0.1:0" if is_needed else "")

    @property
    def http(self) -> str:
        """The address for HTTP: the one that was set, else the default.

        If the default port is in use, or is that of another address, any free port replaces it.
        """
        if "http_listen" in self.model_fields_set or not self.http_listen:
            return self.http_listen
        others = [self.listen, self.feed_listen, self.metrics_listen]
        others += [configured_address("front", each, self.file) for each in _FRONT_ADDRESSES]
        if self.nodes:
            others.append(configured_address("node", "health_listen", self.file))
        addresses = [Address.parse(each) for each in (self.http_listen, *filter(None, others))]
        if self.nodes and (first := self.first_node_metrics):
            count = self.nodes * self.replicas
            addresses += consecutive_addresses(Address.parse(first), count)
        return str(with_fallback_port(*addresses))

    @property
    def first_node_metrics(self) -> str:
        """The metrics address of the first content node, from the settings of content nodes.

        The setting has one address, but each node needs its own. So the others get the next ports.
        """
        return configured_address("node", "metrics_listen", self.file)

    @model_validator(mode="after")
    def _check_index(self) -> Self:
        if self.index is None and self.documents is None:
            raise ValueError("give --index, or --documents with a folder of documents")
        return self

    @model_validator(mode="after")
    def _check_http_feed(self) -> Self:
        if self.http_feed and not self.http_listen:
            raise ValueError("--http-feed needs --http-listen")
        return self

    @model_validator(mode="after")
    def _check_replicas(self) -> Self:
        if self.replicas > 1 and not self.nodes:
            raise ValueError(
                f"--replicas {self.replicas} needs --nodes: replicas are content nodes"
            )
        if self.feed and self.replicas > 1:
            own_flag = "--documents" if self.documents is not None else "--http-feed"
            flag = "--feed-listen" if self.feed_listen else own_flag
            raise ValueError(
                f"--replicas {self.replicas} is not allowed with {flag}: all replicas of a "
                "shard would write to the same directory"
            )
        return self
