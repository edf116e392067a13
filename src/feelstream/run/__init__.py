"""A run and what it leaves behind: run.json, tables of rounds and devices, checkpoints while it is under way."""

from feelstream.run.changes import Change
from feelstream.run.run import Run, dataset_of, play_in, read, resolved, simulate, simulate_in

__all__ = ["Change", "Run", "dataset_of", "play_in", "read", "resolved", "simulate", "simulate_in"]
