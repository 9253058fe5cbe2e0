"""The Flyte 2 backend as one async Python process."""

__version__ = "0.1.0"
