"""What plug-ins of learning do wrong becomes a sentence: they may be users' own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Nested, Reals, frozen, read_only
from feelstream.errors import FeelstreamError
from feelstream.guard import guarded
from feelstream.learning.contract import Learner, Training
from feelstream.learning.local.base import Cohort, LocalTraining
from feelstream.learning.probes import Asked, instance
from feelstream.learning.server.base import ServerUpdate, UpdateContext
from feelstream.plugins import Plugin


class LearningError(FeelstreamError):
    """Local training, a server update or a probe broke its contract."""


def train(
    local: LocalTraining, learner: Learner, theta: NDArray[np.float32], cohort: Cohort, state: Nested
) -> tuple[Training, Nested]:
    """What the cohort brings back, and what its devices may keep."""
    with _guarded("learning.local", local, cohort.round):
        found = local.train(learner, read_only(theta), cohort, frozen(state))
    training, after = found if isinstance(found, tuple) and len(found) == 2 else (None, {})
    shape = (len(cohort.ids), len(theta))
    if not isinstance(training, Training) or not _is_state(after):
        raise _broken("learning.local", local, "must return (Training, dictionary of arrays) from train", cohort.round)
    if not (_is_array(training.updates, shape) and np.isfinite(training.updates).all()):
        raise _broken("learning.local", local, f"must give finite float32 updates of shape {shape}", cohort.round)
    losses = training.losses
    if not (isinstance(losses, np.ndarray) and losses.ndim == 3 and len(losses) == shape[0]):
        raise _broken("learning.local", local, "must give losses of shape (devices, steps, batch)", cohort.round)
    return training, after


def update(local: LocalTraining, state: Nested, after: Nested, cohort: Cohort, sent: Flags) -> Nested:
    """What the devices keep."""
    with _guarded("learning.local", local, cohort.round):
        kept = local.update(frozen(state), frozen(after), cohort, read_only(sent))
    if not _is_state(kept):
        raise _broken("learning.local", local, "must return a dictionary of plain arrays from update", cohort.round)
    return kept


def report(name: str, asked: Asked) -> Reals:
    """(K, …) what the devices report, NaN for those that do not answer."""
    cohort = asked.cohort
    if not len(cohort.ids):
        return np.full(cohort.devices, np.nan)  # of no known shape, and of nobody
    with guarded(lambda what: LearningError(f"probe '{name}' {what}"), at=cohort.round):
        values = np.asarray(instance(name).measure(asked))
    if values.dtype.kind not in "fiub" or len(values) != len(cohort.ids) or not np.isfinite(values).all():
        raise LearningError(f"probe '{name}' must give finite numbers of every device in round {cohort.round}")
    found = np.full((cohort.devices, *values.shape[1:]), np.nan)
    found[cohort.ids] = values
    return found


def start(server: ServerUpdate, parameters: int) -> Nested:
    """What the server's update remembers before the first round."""
    with _guarded("learning.server", server, 0):
        state = server.init(parameters)
    if not _is_state(state):
        raise _broken("learning.server", server, "must return a dictionary of plain arrays from init", 0)
    return state


def step(
    server: ServerUpdate,
    theta: NDArray[np.float32],
    updates: NDArray[np.float32],
    context: UpdateContext,
    state: Nested,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float32], Nested]:
    """θ after the round, which may hold what is not a finite number, and what the server remembers."""
    with _guarded("learning.server", server, context.round):
        found = server.step(read_only(theta), read_only(updates), context, frozen(state), rng)
    after, remembered = found if isinstance(found, tuple) and len(found) == 2 else (None, {})
    if not _is_array(after, theta.shape) or not _is_state(remembered):
        what = f"must return (float32 of shape {theta.shape}, dictionary of arrays) from step"
        raise _broken("learning.server", server, what, context.round)
    return after, remembered  # pyright: ignore[reportReturnType]


def handed_out(server: ServerUpdate, theta: NDArray[np.float32], state: Nested, round: int) -> NDArray[np.float32]:
    """The model that is tested and kept after the round; θ itself where the server says no other."""
    if type(server).handed_out is ServerUpdate.handed_out:
        return theta
    with _guarded("learning.server", server, round):
        model = server.handed_out(read_only(theta), frozen(state))
    if not (_is_array(model, theta.shape) and np.isfinite(model).all()):
        what = f"must return finite float32 of shape {theta.shape} from handed_out"
        raise _broken("learning.server", server, what, round)
    return np.array(model)


def _is_array(values: Any, shape: tuple[int, ...]) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == np.float32 and values.shape == shape


def _is_state(state: Any) -> bool:
    """Nested dictionaries of plain arrays."""
    return isinstance(state, dict) and all(
        isinstance(name, str) and (_is_state(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf"))
        for name, value in state.items()
    )


def _broken(field: str, plugin: Plugin, what: str, round: int) -> LearningError:
    when = f"in round {round}" if round else "before the first round"
    return LearningError(f"{field}: '{plugin.plugin_name()}' {what} {when}")


def _guarded(field: str, plugin: Plugin, round: int) -> guarded:
    return guarded(lambda what: _broken(field, plugin, f"{what},", round))
