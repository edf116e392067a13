"""A race: lanes that go through the same rounds in step, played by a worker thread so that no page ever waits.

`shown` is the round on the page, `head` the last one played by all lanes. Playing moves `shown` forward at the
chosen speed and plays a new round whenever it has caught up with the head; jumping moves it anywhere. While the race
rests the worker plays the next round ahead, so that a step can be shown at once; a change of settings discards it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Lock, Thread
from time import monotonic

from feelstream.errors import FeelstreamError, RunError, sentence
from feelstream.loop.changes import CHANGEABLE
from feelstream.studio.charts import shown_setting
from feelstream.studio.lanes import MOST_LANES, Lane, LiveLane, unused

SPEEDS = {"1/s": 1.0, "2/s": 2.0, "5/s": 5.0, "10/s": 10.0, "fastest": float("inf")}
QUIET_S = 0.15  # after something new, before a round is played ahead: the browser draws first
log = logging.getLogger("feelstream.studio")
TURN = Lock()  # one round at a time on this machine: many sessions share the cores instead of fighting over them


class Race:
    """Lanes under way. Every method may be called from any thread and returns at once."""

    def __init__(self, make: Callable[[], Sequence[Lane]], *, speed: float = 5.0, playing: bool = True) -> None:
        self._make, self.speed, self.playing = make, speed, playing
        self.lanes: list[Lane] = []
        self.shown = 0
        self.version = 0  # grows whenever there is something new to show
        self.ready = False
        self.problem: str | None = None
        self._target = 0  # the round to show as soon as it is played: that of a step or a jump
        self._jobs: list[Callable[[], None]] = []
        self._suspended = self._closed = False
        self._due = 0.0
        self._changed = Condition()
        self._thread = Thread(target=self._work, name="race", daemon=True)
        self._thread.start()

    @property
    def rounds(self) -> int:
        """The length of the race."""
        return min((lane.scenario.system.rounds for lane in self.lanes), default=0)

    @property
    def head(self) -> int:
        return min((lane.head for lane in self.lanes), default=0)

    @property
    def oldest(self) -> int:
        return max((lane.oldest for lane in self.lanes), default=1)

    @property
    def busy(self) -> bool:
        """Whether rounds are being played that a step, a jump or a fork asked for."""
        return not self.ready or bool(self._jobs) or self._target > self.shown

    def play(self) -> None:
        with self._news():
            self.playing, self._target = True, 0
            if self.shown >= self.rounds and self.ready:
                self.shown = max(self.oldest - 1, 0)  # again from the start

    def pause(self) -> None:
        with self._news():
            self.playing, self._target = False, 0

    def step(self, by: int = 1) -> None:
        """One round on (or back), and stop."""
        self.jump(self.shown + by)

    def jump(self, round: int) -> None:
        """Show this round, playing up to it if need be, and stop there."""
        with self._changed:
            before = self.playing, self.shown
            self.playing = False
            self._target = min(max(round, self.oldest, 1), self.rounds)
            self.shown = min(self._target, self.head)
            if (self.playing, self.shown) != before:
                self._tell()
            else:  # there is nothing to draw before the worker has played the round
                self._changed.notify_all()

    def set_speed(self, rounds_per_s: float) -> None:
        with self._news():
            self.speed = rounds_per_s

    def change(self, field: str, value: str) -> None:
        """Another V, size or budget from the next round on, in every live lane that has it."""
        with self._news():
            if self.head >= self.rounds:
                raise RunError("the race is over; fork from an earlier round instead")
            has = [lane for lane in self.lanes if isinstance(lane, LiveLane) and has_field(lane, field)]
            for lane in has:
                lane.check(self.rounds, field, value)
            self._jobs.append(lambda: self._change(has, field, value))

    def fork(self, lane: int, after: int, field: str, value: str) -> str:
        """Add a lane: the same run up to round `after`, then with another V, size or budget. Returns its label."""
        with self._news():
            original = self.lanes[lane]
            assert isinstance(original, LiveLane), "a stored run has no other future"
            if len(self.lanes) >= MOST_LANES:
                raise RunError(f"a race has at most {MOST_LANES} lanes; remove one first")
            if not has_field(original, field):
                raise RunError(f"{original.label} has no field {field}")
            if not 0 <= after < original.scenario.system.rounds:
                raise RunError("after the last round there is no other future; go back to an earlier round first")
            if not original.check(after + 1, field, value):
                has = f"{original.label} has {shown_setting(field, value)} in round {after + 1} already"
                raise RunError(f"{has}; give another value to fork")
            label = f"{original.label}, {field.split('.')[-1]} = {value} from {after + 1}"
            label = unused(label, [lane.label for lane in self.lanes])
            self._jobs.append(lambda: self._fork(original, label, after, field, value))
            return label

    def remove(self, lane: int) -> None:
        with self._news():
            if len(self.lanes) > 1:
                del self.lanes[lane]

    def suspend(self, yes: bool = True) -> None:
        """Play nothing while nobody looks; all else stays as it is."""
        with self._news():
            self._suspended = yes

    def close(self) -> None:
        with self._news():
            self._closed = True

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the worker has ended (after `close`)."""
        self._thread.join(timeout_s)

    def wait(self, until: Callable[[Race], bool], timeout_s: float = 600.0) -> bool:
        """Wait until something holds; for those who may wait, such as tests."""
        with self._changed:
            return self._changed.wait_for(lambda: until(self) or self._closed, timeout_s)

    @contextmanager
    def _news(self) -> Iterator[None]:
        """What is done within is told to worker and page, unless it is refused."""
        with self._changed:
            yield
            self._tell()

    def _tell(self) -> None:
        self.version += 1
        self._changed.notify_all()

    def _work(self) -> None:
        try:
            lanes = list(self._make())
            with self._changed:
                self.lanes, self.ready = lanes, True
                if self.playing:
                    self._changed.notify_all()  # the first round comes at once, and is what the page draws first
                else:
                    self._tell()
            while self._turn():
                pass
        except FeelstreamError as problem:
            self._fail(sentence(problem))
        except Exception as problem:  # a worker that dies silently would leave the page waiting
            log.exception("the race stopped")
            self._fail(f"the race stopped: {sentence(problem)}")

    def _fail(self, why: str) -> None:
        with self._news():
            self.problem, self.playing, self._target = why, False, 0

    def _turn(self) -> bool:
        """Wait for something to do and do it; False when the race is closed."""
        job = None
        with self._changed:
            while not self._closed and (job := self._job()) is None:
                waits = self.playing and not self._suspended
                self._changed.wait(max(self._due - monotonic(), 0.0) if waits else None)
        if self._closed or job is None:
            return False
        job()
        return True

    def _job(self) -> Callable[[], None] | None:
        if self._jobs:
            return self._do_first_job
        if self._suspended:
            return None
        if self._target > self.shown or (self.playing and self._due <= monotonic()):
            return self._advance
        if self.playing:
            return None
        return None if all(lane.is_ahead for lane in self.lanes) else self._look_ahead

    def _look_ahead(self) -> None:
        with self._changed:
            if self._changed.wait(QUIET_S):  # there is something to do
                return
        for lane in list(self.lanes):
            with TURN:
                lane.look_ahead()
        with self._changed:
            self._changed.notify_all()

    def _do_first_job(self) -> None:
        try:
            self._jobs[0]()
        finally:
            with self._changed:
                self._jobs.pop(0)
                self._tell()

    def _advance(self) -> None:
        """Show one round more, playing it first if it is new."""
        shown, head = self.shown, self.head
        if self.playing:
            self._due = monotonic() + 1 / self.speed
        for lane in list(self.lanes):
            if lane.head == head == shown < self.rounds:
                with TURN:
                    lane.step()
        with self._news():
            if self.shown == shown:  # unless someone jumped meanwhile
                self.shown = min(shown + 1, self.head)
            self.playing = self.playing and self.shown < self.rounds

    def _change(self, lanes: Sequence[LiveLane], field: str, value: str) -> None:
        """Between two rounds, so that all lanes change in the same one."""
        if self.head < self.rounds:
            for lane in lanes:
                lane.change(field, value)

    def _fork(self, original: LiveLane, label: str, after: int, field: str, value: str) -> None:
        """Let a new lane catch up with the others, round by round, then show it."""
        forked = original.fork(label, after, field, value)
        while forked.head < self.head and not self._closed:
            with TURN:
                forked.step()
        with self._changed:
            self.lanes.append(forked)


def has_field(lane: Lane, field: str) -> bool:
    if field not in CHANGEABLE:
        return False
    section, name = field.split(".")
    return name in type(getattr(lane.scenario, section)).model_fields
