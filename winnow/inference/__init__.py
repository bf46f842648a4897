"""Runs models: sessions of several runtimes, encoders, and threads."""
