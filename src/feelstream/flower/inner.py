"""The strategy inside: it writes the messages, averages and evaluates as if nobody had chosen the nodes for it.

Where it could stumble over the types of the model it is shown floats, and what it makes of them is given the model's
types again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import (
    Bulyan,
    FedAvg,
    FedMedian,
    FedTrimmedAvg,
    FedXgbBagging,
    FedXgbCyclic,
    MultiKrum,
    QFedAvg,
    Strategy,
)

from feelstream.arrays import Nested
from feelstream.errors import FeelstreamError
from feelstream.flower.kept import restored, saved
from feelstream.flower.updates import (
    Model,
    as_floats,
    as_model,
    needs_floats,
    read_model,
    write_model,
)
from feelstream.flower.wire import ReportError

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
OWN_MODELS = (FedXgbBagging, FedXgbCyclic)  # whose updates need not look like the model
UNWEIGHTED = (Bulyan, FedMedian, FedTrimmedAvg, MultiKrum, QFedAvg)  # in which late updates would count in full


class Inner:
    """A Flower strategy, possibly with others inside (as Flower's wrappers for differential privacy have)."""

    def __init__(self, strategy: Strategy, check_updates: bool | None = None) -> None:
        """check_updates: whether updates must look like the model; None: unless trees are what is learned."""
        self.strategy, self._chain = strategy, list[Any]()
        while strategy is not None:
            self._chain.append(strategy)
            strategy = getattr(strategy, "strategy", None)  # type: ignore[assignment]
        own_models = any(isinstance(each, OWN_MODELS) for each in self._chain)
        self.check_updates = not own_models if check_updates is None else check_updates
        # Whether it takes exactly one set of arrays and one of metrics in a reply, as Flower's own strategies do.
        self.one_of_each = all(type(each).aggregate_train.__module__.startswith("flwr.") for each in self._chain)
        keys = (each.weighted_by_key for each in self._chain if hasattr(each, "weighted_by_key"))
        self.weight_key = next(keys, "num-examples")
        if self._largest("fraction_train", 1.0) == 0:
            raise FeelstreamError("the inner strategy has fraction_train=0, so it would train nobody")
        # The numbers and texts that were given to each, as they were at first: another choice would be another run.
        self.settings = [
            {"name": type(each).__name__}
            | {name: value for name, value in vars(each).items() if isinstance(value, bool | int | float | str)}
            for each in self._chain
        ]
        self._asked = 0  # the last round for which it was asked for messages
        self._few = False  # whether nodes were too few to evaluate on when it was asked last
        self._record: ArrayRecord | None = None  # the model as it was last read or written, in both forms
        self.known: Model = {}

    def model(self, arrays: ArrayRecord) -> Model:
        """The arrays in a record, which are read once."""
        if arrays is not self._record:
            self._record, self.known = arrays, read_model(arrays)
        return self.known

    @property
    def accepts_late(self) -> bool:
        """Whether updates of earlier rounds may be among those that it averages."""
        said = getattr(self.strategy, "accepts_late", None)
        averages = isinstance(self.strategy, FedAvg) and not isinstance(self.strategy, UNWEIGHTED)
        return averages and self.check_updates and self.one_of_each if said is None else said

    def contents(
        self, t: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid, nodes: Sequence[int]
    ) -> list[RecordDict]:
        """What it would send to each of these nodes. A node that it would not write to gets what the first one gets."""
        if not nodes:
            return []
        self._asked, model = t, self.model(arrays)
        shown = write_model(as_floats(model)) if self._converts(model) else arrays
        # It may insist on more nodes than were chosen; the same ones again satisfy it.
        at_least = int(max(self._largest("min_available_nodes", 1), self._largest("min_train_nodes", 1), len(nodes)))
        view: Any = GridView(grid, list(islice(cycle(nodes), at_least)))
        messages = list(self.strategy.configure_train(t, shown, config, view))
        if not messages:
            return []
        own = {message.metadata.dst_node_id: message.content for message in messages}
        contents = [own.get(node, messages[0].content) for node in nodes]
        return [
            RecordDict({key: arrays if record is shown else record for key, record in content.items()})
            for content in contents
        ]

    def aggregate(self, t: int, replies: Sequence[Message]) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The model that it makes of these updates, None where it stays as it was, and its metrics."""
        if self._asked != t:  # nobody was scheduled, so it has not heard of this round
            return None, None
        updates, model = list(replies), self.known
        if self._converts(model):
            for update in updates:
                key = next(key for key, found in update.content.array_records.items() if found.keys() == model.keys())
                update.content[key] = write_model(as_floats(read_model(update.content.array_records[key])))
        # What it raises ends the run with its own traceback: every reply was checked, so the mistake is not theirs.
        found, metrics = self.strategy.aggregate_train(t, updates)
        if found is None or not self.check_updates:
            return found, metrics
        try:
            values = as_model(found, model)
        except ReportError as problem:
            log.error("round %d: the model stays as it was: %s", t, problem)
            return None, metrics
        if any((found[name].dtype, tuple(found[name].shape)) != (str(v.dtype), v.shape) for name, v in values.items()):
            found = write_model(values)
        self._record, self.known = found, values
        return found, metrics

    def _converts(self, model: Model) -> bool:
        return self.check_updates and needs_floats(model)

    def evaluation(
        self, t: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid, nodes: list[int]
    ) -> list[Message]:
        """Its messages for evaluation, unless it would have to wait for more nodes than there are."""
        if self._largest("fraction_evaluate", 1.0) == 0:
            return []
        needed = max(self._largest("min_available_nodes", 0), self._largest("min_evaluate_nodes", 0))
        if len(nodes) < needed:
            level, self._few = logging.DEBUG if self._few else logging.WARNING, True
            log.log(level, "round %d: %d nodes are too few to evaluate on; %d are needed", t, len(nodes), needed)
            return []
        self._few = False
        view: Any = GridView(grid, nodes)
        return list(self.strategy.configure_evaluate(t, arrays, config, view))

    def aggregate_evaluation(self, t: int, replies: Iterable[Message]) -> MetricRecord | None:
        return self.strategy.aggregate_evaluate(t, list(replies))

    def _largest(self, name: str, default: float) -> float:
        return max((getattr(strategy, name) for strategy in self._chain if hasattr(strategy, name)), default=default)

    def snapshot(self) -> Nested:
        """What the strategy has learnt so far (momenta, adaptive norms, …): its numbers and arrays, by depth."""
        return {
            str(depth): {name: found for name, value in vars(strategy).items() if (found := saved(value))}
            for depth, strategy in enumerate(self._chain)
        }

    def restore(self, state: Nested) -> None:
        for depth, strategy in enumerate(self._chain):
            for name, found in state[str(depth)].items():
                if name in vars(strategy):
                    setattr(strategy, name, restored(found, getattr(strategy, name)))


@Grid.register
class GridView:
    """A grid on which only some nodes are seen."""

    def __init__(self, grid: Grid, nodes: list[int]) -> None:
        self._grid, self._nodes = grid, nodes

    def get_node_ids(self) -> Iterable[int]:
        return list(self._nodes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)
