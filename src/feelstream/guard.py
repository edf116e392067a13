"""What a plug-in raises becomes one sentence that says whose fault it is: plug-ins may be users' own."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from feelstream.errors import FeelstreamError
from feelstream.plugins import in_a_sentence


class guarded:  # noqa: N801  as a function would be called
    """Around a call of a plug-in: `with guarded(broken, plugin, at=round): …`.

    What it raises becomes the error `broken(plugin, what)`. Our own errors and the user's interrupt pass as they are. A
    class that puts its words together in the end: rounds without learning are short, and nearly all calls succeed.
    """

    __slots__ = ("at", "broken", "named")

    def __init__(self, broken: Callable[..., FeelstreamError], *named: Any, at: int | None = None) -> None:
        """named: what `broken` is called with, before what went wrong. at: the round, 0: before the first."""
        self.broken, self.named, self.at = broken, named, at

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is None or isinstance(problem, FeelstreamError | KeyboardInterrupt):
            return
        when = "" if self.at is None else f" in round {self.at}" if self.at else " before the first round"
        why = in_a_sentence(problem)
        advice = "; arrays that it is handed are read-only, so change a copy" if "read-only" in why else ""
        raise self.broken(*self.named, f"failed{when}: {why}{advice}") from problem
