"""feelstream: dynamic device scheduling for federated edge learning with streaming data."""

__version__ = "0.1.0"
