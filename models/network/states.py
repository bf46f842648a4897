"""Where the last hidden states are inside an encoder's graph, also after quantisation.

Knows that a sentence vector is made of them by pooling: whatever the vector depends on, the states
are the nearest value that a layer normalisation gave.
"""

from collections import deque
from pathlib import Path

import onnx

_NORMALISATION = "LayerNormalization"
_OUTPUT = "embedding"


def states_of(graph: Path) -> str:
    """The name of the value [1, tokens, width] that holds the last hidden states; empty if there
    is none.

    The graph is walked back from the vector, nearest values first.
    """
    nodes = onnx.load(str(graph), load_external_data=False).graph.node
    makers = {output: node for node in nodes for output in node.output}
    waiting, seen = deque([_OUTPUT]), {_OUTPUT}
    while waiting:
        node = makers.get(waiting.popleft())
        if node is None:
            continue
        if node.op_type == _NORMALISATION:
            return str(node.output[0])
        for name in node.input:
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return ""
