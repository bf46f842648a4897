"""Which of an encoder's hidden states heads are given, and where they are inside its graph.

Knows graphs of BERT's shape, also after quantisation: every layer ends in a layer normalisation,
and so does its attention. The last layer of an encoder that was trained to retrieve forgets what
single words look like: on the shipped one, of six layers, heads on the fourth were better on all
four data sets that were tried (docs/models-heads.md).
"""

from pathlib import Path

import onnx

_NORMALISATION = "LayerNormalization"
_DEPTH = 2 / 3
"""Of the layers below the states, of all layers."""


def states_of(graph: Path) -> str:
    """The name of the value [1, tokens, width] that holds the states; empty if there is none."""
    nodes = onnx.load(str(graph), load_external_data=False).graph.node
    found = [str(node.output[0]) for node in nodes if node.op_type == _NORMALISATION]
    # that of the embeddings, then two a layer
    layers = len(found) // 2
    if not layers or len(found) % 2 == 0:
        return found[-1] if found else ""
    return found[2 * max(round(_DEPTH * layers), 1)]
