"""Server updates by name, as in `kind` of [learning.server]; each file adds its own."""

from feelstream.learning.server import fedopt, wrappers
from feelstream.learning.server.base import SERVER_UPDATES, FedAvg, ServerUpdate, UpdateContext

__all__ = ["SERVER_UPDATES", "FedAvg", "ServerUpdate", "UpdateContext", "fedopt", "wrappers"]
