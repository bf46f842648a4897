"""A whole cluster on this machine: one process per node, for trying things out."""
