"""Unit costs of a cluster's parts on given hardware, on which sizing is based."""
