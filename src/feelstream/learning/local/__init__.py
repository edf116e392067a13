"""Local training by name, as in `kind` of [learning.local]."""

from feelstream.learning.local.base import Cohort, LocalTraining
from feelstream.learning.local.own import LocalTrainings, OwnFunction
from feelstream.learning.local.sgd import Sgd

LOCAL_TRAININGS = LocalTrainings("local_training", "local_training", LocalTraining, (Sgd,))

__all__ = ["LOCAL_TRAININGS", "Cohort", "LocalTraining", "OwnFunction", "Sgd"]
