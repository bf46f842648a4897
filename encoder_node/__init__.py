"""An encoder node: encodes texts for front nodes, one at a time or several in one run."""
