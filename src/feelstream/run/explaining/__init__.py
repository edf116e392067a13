"""Why a device was scheduled in a round, or not: the terms that decided, against whom, and what would change it."""

from feelstream.run.explaining.explanation import Explanation, Threshold, explain, explain_scene, ranked
from feelstream.run.explaining.scenes import Scene, Scenes

__all__ = ["Explanation", "Scene", "Scenes", "Threshold", "explain", "explain_scene", "ranked"]
