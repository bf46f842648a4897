"""The caller of a call, once the gate has let its key in."""

from functools import partial

from winnow.caller import Caller
from winnow.keys.gate import Gate
from winnow.keys.key import Key
from winnow.keys.scope import Scope


def identified(gate: Gate, key: Key, scope: Scope) -> Caller:
    """The caller whose key was let in for a scope."""
    return Caller(
        key.name,
        partial(gate.held, key, scope),
        lambda also: gate.may(key, Scope(also)),
        lambda also: gate.expect(key, Scope(also)),
    )
