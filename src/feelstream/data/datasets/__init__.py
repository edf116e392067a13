"""Data sets by name or path: what is known, where it is fetched from, and what users bring as .npz."""

from feelstream.data.datasets.dataset import Dataset
from feelstream.data.datasets.loading import NAMES, load

__all__ = ["NAMES", "Dataset", "load"]
