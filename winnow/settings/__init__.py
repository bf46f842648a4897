"""Settings: one declared field defines a flag, a variable, a key of the TOML file and the help."""
