"""Pure policies of the front node: settings and numbers in, a decision out. No I/O."""
