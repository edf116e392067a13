"""When a federation that does not train ends with an error: nobody wants a model that was never trained.

A round is lost if devices could have been scheduled or none could, and no update was received; a policy that chooses
to rest loses none. The first lost round is logged as an error with its reason. After `limit` lost rounds in a row the
run ends, once no device is left that has not failed since anybody last trained; and at the latest after the last round
if nobody has trained in the whole run.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from feelstream.arrays import Flags, Nested
from feelstream.errors import FeelstreamError
from feelstream.loop.round import RoundRecord

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
LONGEST = 10  # times the limit: with thousands of devices not everyone need fail before it is clear that nobody can
SHOWN = 20  # names that a sentence lists


class DeploymentError(FeelstreamError):
    """The federation cannot train; the message says why."""


class Patience:
    """Lost rounds in a row, and why each device has failed since it last trained."""

    def __init__(self, limit: int | None, rounds: int, name: Callable[[int], str]) -> None:
        """limit: None never ends a run; rounds: of the whole run; name: of a device."""
        self.limit, self.rounds, self.name = limit, rounds, name
        self.lost = 0
        self.modelless = 0  # rounds in a row whose updates made no model
        self.trained = False  # whether the run has ever made a model of updates
        self.failed: dict[int, str] = {}

    def judge(
        self,
        record: RoundRecord,
        failures: Mapping[int, str],
        otherwise: Callable[[], str],
        cut: Collection[int] = (),
    ) -> None:
        """Close a round. failures: scheduled devices whose reply is of no use, and why; otherwise: why nobody could be
        scheduled at all; cut: devices that were not waited for, which have not failed."""
        schedule, sent, t = record.decision.schedule, record.transmission.sent, record.observation.round
        for device in map(int, schedule[sent]):
            self.failed.pop(device, None)
        late = {int(device): "it took longer than system.round_s" for device in schedule[~sent] if device not in cut}
        self.failed |= late | dict(failures)
        able = record.observation.available
        rests = not len(schedule) and bool(record.decision.plan.feasible.any())  # a policy may choose to
        if sent.any() or rests:
            self.lost = 0
            return
        self.lost += 1
        reason = self._failures()
        if not len(schedule):
            reason = "no device can be in time" if able.any() else otherwise()
        if self.lost == 1:
            log.error("round %d: nobody could be trained: %s", t, reason)
        over = t >= self.rounds and not self.trained
        if self.limit is not None and (over or self._exhausted(able)):
            raise DeploymentError(f"nobody could be trained for {self.lost} rounds: {reason}")

    def _exhausted(self, able: Flags) -> bool:
        assert self.limit is not None
        untried = [device for device in map(int, np.flatnonzero(able)) if device not in self.failed]
        return self.lost >= (LONGEST * self.limit if untried else self.limit)

    def _failures(self) -> str:
        """Why, with the devices it is true of, the most common reason first."""
        common = Counter(self.failed.values()).most_common()
        parts = []
        for reason, number in common[:3]:
            devices = [self.name(device) for device in sorted(self.failed) if self.failed[device] == reason]
            parts.append(f"{reason} (device{'s' if number > 1 else ''} {shortened(devices)})")
        return "; ".join(parts) + (f"; and {len(common) - 3} other reasons" if len(common) > 3 else "")

    def aggregated(self, t: int, made: bool) -> None:
        """Updates were received in round t; made: whether the strategy inside made a model of them."""
        self.trained |= made
        self.modelless = 0 if made else self.modelless + 1
        if made:
            return
        log.error("round %d: the strategy inside made no model of the updates, so that it stays as it was", t)
        over = t >= self.rounds and not self.trained
        if self.limit is not None and (over or self.modelless >= self.limit):
            raise DeploymentError(
                f"updates were received for {self.modelless} rounds, but the strategy inside made no model of them"
            )

    def snapshot(self) -> Nested:
        return {
            "counts": np.array([self.lost, self.modelless, int(self.trained)]),
            "failed": np.array(list(self.failed), np.int64),
            "reasons": np.array(list(self.failed.values()), np.str_),
        }

    def restore(self, state: Nested) -> None:
        self.lost, self.modelless = (int(number) for number in state["counts"][:2])
        self.trained = bool(state["counts"][2])
        self.failed = dict(zip(state["failed"].tolist(), map(str, state["reasons"]), strict=True))


def shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown or "nobody"
