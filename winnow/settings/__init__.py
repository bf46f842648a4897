"""Settings: one declaration is flag, variable, file key and help."""
