"""The ONNX nodes that compute token vectors: their names, and how they join the encoder.

The bundle's file of late interaction is a serialised ONNX model without inputs. Its nodes use
inner tensors of the encoder. Appended to the encoder's file, it forms one model with it (see
`winnow.inference.inner_output`). So the encoder's file, and all that depends on its checksum,
stays as it is.
"""

from typing import Final

VECTORS: Final = "token_vectors"
"""Output: a vector of norm 1 for each token, float32 [sequences, tokens, values]."""
WEIGHTS: Final = "token_weights"
"""Output: the weight of each token in a question, float32 [sequences, tokens]."""
