"""A minimal float model with the inputs of encoders and readers."""

from pathlib import Path

import onnx


def doubling_model(path: Path) -> Path:
    """Writes a graph whose output `doubled` is twice each input id, as a float."""
    helper, kinds = onnx.helper, onnx.TensorProto
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(n, kinds.INT64, ["batch", "tokens"]) for n in names]
    output = helper.make_tensor_value_info("doubled", kinds.FLOAT, ["batch", "tokens"])
    nodes = [
        helper.make_node("Mul", ["input_ids", "attention_mask"], ["kept"]),
        helper.make_node("Add", ["kept", "token_type_ids"], ["typed"]),
        helper.make_node("Add", ["typed", "kept"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["doubled"], to=kinds.FLOAT),
    ]
    graph = helper.make_graph(nodes, "doubled", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path
