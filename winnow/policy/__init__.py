"""Pure policies that both services use: settings and numbers in, a decision out. No I/O."""
