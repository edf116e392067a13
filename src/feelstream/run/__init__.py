"""A run and what it leaves behind: run.json, tables of rounds and devices, checkpoints while it is under way."""

from feelstream.loop.changes import Change
from feelstream.run.play import play_in, simulate, simulate_in
from feelstream.run.preparing import dataset_of, with_numbers
from feelstream.run.run import Run, read

__all__ = ["Change", "Run", "dataset_of", "play_in", "read", "simulate", "simulate_in", "with_numbers"]
