"""Running models: ONNX Runtime sessions and what is built on them."""
