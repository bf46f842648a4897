"""Removes what merges left behind: what is open can be read on."""

import shutil
from pathlib import Path

import structlog

from winnow.content_node.live.reading import LIVE
from winnow.content_node.merging.lock import locked
from winnow.content_node.merging.names import LOCK, generation_path, outlived, unfinished
from winnow.content_node.states.dropping import are_whole, drop_states
from winnow.errors import ArtefactError, UnavailableError
from winnow.faultpoints import reach

_log = structlog.get_logger("content_node")


def names_in(shard: Path) -> list[str]:
    """The names of all that lies beside the log of a shard; raises ArtefactError if they cannot be
    read.
    """
    try:
        return [path.name for path in (shard / LIVE).iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ArtefactError(f"cannot read {shard / LIVE}: {error.strerror}") from error


def tidy(shard: Path, served: int) -> None:
    """Removes what nobody needs now that the generation of write `served` is served.

    The states of what was built go, too, once those of the generation are whole: nobody reads that
    base again, as the log does not reach back to it.

    Raises:
        OSError: something cannot be removed.

    """
    _remove(shard, outlived(names_in(shard), served))
    generation = generation_path(shard, served)
    if generation.exists() and are_whole(generation):
        try:
            drop_states(shard)
        except OSError as error:  # what was built may belong to somebody else
            _log.warning("states that nobody needs cannot be removed", reason=str(error))
    reach("clean.done")


def remove_partial(shard: Path) -> None:
    """Removes what interrupted merges left; to be called by who holds the lock of merges.

    Raises:
        OSError: something cannot be removed.

    """
    _remove(shard, unfinished(names_in(shard)))


def remove_unfinished(shard: Path) -> None:
    """Removes what an interrupted merge left, unless it goes on: its node may have been killed."""
    if not unfinished(names_in(shard)):
        return
    try:
        with locked(shard / LIVE / LOCK):
            remove_partial(shard)
    except UnavailableError:
        return
    except OSError as error:
        _log.warning("what an interrupted merge left cannot be removed", reason=str(error))


def _remove(shard: Path, names: list[str]) -> None:
    for name in names:
        shutil.rmtree(shard / LIVE / name)
        reach("clean.one")
