"""The unit costs of a cluster's parts on some hardware, which sizing is based on."""
