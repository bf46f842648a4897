"""Why a checkpoint cannot become part of a bundle."""

from winnow.errors import WinnowError


class CheckpointError(WinnowError):
    """A directory lacks a file, or holds a network that Winnow cannot run in this role."""


class VocabularyError(WinnowError):
    """A vocabulary does not fit its network, or two networks have different ones."""


class ParityError(WinnowError):
    """An exported graph does not compute what the network does."""


UNFAITHFUL = "nothing was written; report it with config.json and the versions of torch and onnx"
"""What to do about a graph that nobody can mend but us."""
