"""Why a device was scheduled in a round, or not: the terms that decided, against whom, and what would change it."""

from feelstream.run.explaining.explanation import Explanation, explain, explain_scene
from feelstream.run.explaining.scenes import Scene, Scenes
from feelstream.run.explaining.thresholds import Threshold

__all__ = ["Explanation", "Scene", "Scenes", "Threshold", "explain", "explain_scene"]
