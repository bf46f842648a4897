"""Runs models: sessions in several runtimes, text encoders, and thread pools."""
