"""The command line, for every test in this room."""

from commands import feelstream

__all__ = ["feelstream"]  # a fixture
