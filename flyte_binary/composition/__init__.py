"""Puts the server together: the one place that names concrete classes and reads the configuration tree."""

from flyte_binary.composition.serve import serve

__all__ = ["serve"]
