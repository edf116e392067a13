"""The client's side: three lines that let an existing ClientApp tell the scheduler what the device knows.

    @app.query("feelstream")
    def report(message, context):
        return Device(context, message, label_counts()).answer()

    @app.train()
    def train(message, context):
        device = Device(context, message, label_counts())        # 1
        with device.training():                                  # 2: time, and energy where there is a meter
            ...
        return device.answer(arrays, metrics)                    # 3

`label_counts()` is the app's own: how many samples of each label the device holds now. The first message of a round
fixes the counts for that round; what arrives later belongs to the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from numpy.typing import ArrayLike, NDArray

from feelstream.arrays import Nested
from feelstream.errors import FeelstreamError, sentence
from feelstream.flower import meters
from feelstream.flower.wire import FITTED, MODS, MOST_LETTERS, REPORT, SERVER, DeviceReport, unpacked

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
STATE = "feelstream"


class DeviceError(FeelstreamError):
    """The helper cannot work with what the app or the server gave it."""


class NoisyCounts(NamedTuple):
    """A device's counts as the server receives them, so that they tell of its labels without telling of any one sample.

    The server learns a device's counts only through what was added since the last report. Each addition a of m counts
    is released as a + Lap(1/ε)^m: one sample changes one count by one, so every release is ε-differentially private,
    and since each sample is in one addition only, so are all of a run's releases together. The running sum of the
    releases, rounded and kept from falling, is post-processing. Only buffers that delete nothing can be reported so.

    Reference: C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity in Private Data Analysis",
    TCC 2006.
    """

    covered: NDArray[np.int64]  # (m,) true counts covered so far
    total: NDArray[np.float64]  # (m,) the sum of all noisy additions
    released: NDArray[np.int64]  # (m,) what the server has received

    @classmethod
    def empty(cls, classes: int) -> NoisyCounts:
        return cls(np.zeros(classes, np.int64), np.zeros(classes), np.zeros(classes, np.int64))

    def tell(self, counts: NDArray[np.int64], epsilon: float, rng: np.random.Generator) -> NoisyCounts:
        """The state after telling of what was added up to `counts`; unchanged where nothing may be new.

        Noise is added whether or not a label has grown, or its absence would tell.
        """
        total = self.total + (counts - self.covered) + rng.laplace(0.0, 1.0 / epsilon, len(counts))
        return NoisyCounts(counts, total, np.maximum(self.released, np.rint(total).astype(np.int64)))


class Device:
    """What this device is and holds in this round, kept in `context.state` between messages."""

    def __init__(
        self,
        context: Context,
        message: Message,
        held: Sequence[int] | NDArray | None = None,
        *,
        labels: Sequence[int] | NDArray | None = None,
        features: ArrayLike | None = None,
        fresh: Sequence[int] | NDArray | None = None,
        name: str | None = None,
        f_hz: float | None = None,
        beta: float | None = None,
        meter: meters.Meter | Literal["auto"] | None = "auto",
        set_f_hz: meters.SetFrequency | Literal["auto"] | None = "auto",
        epsilon: float | None = None,
        priority: float | None = None,
    ) -> None:
        """held: label counts of the samples held now, (m,); or labels: the label of each; or, where the server wants
        them, features: (n, m) a row of each, with a single 1 in the cell in which it counts. The rest has a default:

        fresh: counts of those among them that are fresh; needed only where samples are deleted.
        name: stable name; else node-config `device-name`, else `partition-id`.
        f_hz: CPU frequency; else what psutil reads, else the highest that the server expects.
        beta: mean channel gain; else node-config `beta`, else the middle of what the server expects.
        meter: a callable that gives the joules spent so far (feelstream.flower.meters has some); "auto": what
            node-config `meter` names (rapl, nvml, battery, or several joined by +), else its `power-w` times the
            measured seconds, else RAPL where it can be read, else the model.
        set_f_hz: applies the frequency that the policy chose for this round (lyapunov_joint) while the device trains:
            a context manager, which gives False where it could not; "auto": the kernel's cpufreq where that may be
            written, else nothing.
        epsilon: tell label counts with Laplace noise, ε-differentially private per sample over the whole run.
        priority: factor on the importance of its data; else node-config `priority`. The server may limit it.
        """
        server = message.content.metric_records.get(SERVER) if message.has_content() else None
        self._context, self._message = context, message
        self.scheduled = server is not None  # under any other strategy it only passes replies on
        self.chosen_f_hz: float | None = None
        self.meter, self._meter = "the model", None
        self._t_cmp_s: float | None = None
        self._e_cmp_j: float | None = None
        self._held_f_hz: bool | None = None
        if server is None:
            return
        self._server: dict[str, Any] = dict(server)
        self._features = "features" in self._server
        held = _counts(held, labels, features, int(self._server["classes"]), self._features)
        self.round = int(self._server["round"])
        self.name = name or _configured_name(context)
        saved = context.state.metric_records.get(STATE)
        self._saved: dict[str, Any] = dict(saved) if saved is not None else {}
        if self._saved.get("round") == self.round:
            held = self._saved["stored-labels"]
            fresh = self._saved.get("fresh-labels")
        elif epsilon is not None:
            held = self._noisy(np.asarray(held, np.int64), epsilon)
        if fresh is None and self._server["deletes"]:
            raise DeviceError("where the scenario's buffer deletes samples, the app must give `fresh` itself")
        self.stored_labels = np.asarray(held, np.int64)
        self.fresh_labels = None if fresh is None else np.asarray(fresh, np.int64)
        low, high = self._server["frequency-hz"]
        reading = f_hz or meters.cpu_frequency_hz() or high
        self.f_hz = float(np.clip(reading, low, high))
        self.beta = float(beta or context.node_config.get("beta", 0) or np.sqrt(np.prod(self._server["gain-range"])))
        stated = context.node_config.get("priority") if priority is None else priority
        if isinstance(stated, bool) or not isinstance(stated, int | float | None):
            raise DeviceError(f"priority must be a number, not {stated!r:.40}")
        self.priority = stated
        self.meter, self._meter = (
            meters.best(context.node_config.get("power-w"), context.node_config.get("meter"))
            if meter == "auto"
            else meters.given(meter)
        )  # fmt: skip
        chosen = self._server.get("chosen-f-hz")
        self.chosen_f_hz = None if chosen is None else float(chosen)
        self._set_f_hz = meters.at_frequency if set_f_hz == "auto" else set_f_hz
        self._save()

    @contextmanager
    def training(self) -> Iterator[None]:
        """Measure what happens inside: seconds always, joules where there is a meter; at the policy's frequency."""
        if not self.scheduled:
            yield
            return
        wanted = self._set_f_hz if self.chosen_f_hz is not None else None
        with wanted(self.chosen_f_hz) if wanted and self.chosen_f_hz is not None else nullcontext(False) as held:
            self._held_f_hz = None if self.chosen_f_hz is None else held is not False
            before_j, start = self._read_meter(), perf_counter()
            yield
            self._t_cmp_s = perf_counter() - start
            self._e_cmp_j = self._spent_j(before_j, self._read_meter())

    def _read_meter(self) -> float | None:
        """What the meter shows; None where it does not work, which must not cost the device its update."""
        if self._meter is None:
            return None
        try:
            return float(self._meter())
        except Exception as problem:  # the app's own code, or the hardware
            self._meter_fails(sentence(problem))
            return None

    def _spent_j(self, before_j: float | None, after_j: float | None) -> float | None:
        if before_j is None or after_j is None:
            return None
        if not 0 <= after_j - before_j < float("inf"):
            self._meter_fails(f"it went from {before_j:.6g} J to {after_j:.6g} J")
            return None
        return after_j - before_j

    def _meter_fails(self, reason: str) -> None:
        shown = "".join(letter if letter.isprintable() else " " for letter in reason)
        self.meter = f"the model, since the meter failed: {shown}"[:MOST_LETTERS]
        log.warning("device %s: its energy is that of %s", self.name, self.meter)

    def report(self, **after_training: Any) -> DeviceReport:
        """What the server receives; after training also gain, t_tr_s, e_tr_j and losses, where the app has them."""
        measured: dict[str, Any] = {"t_cmp_s": self._t_cmp_s, "e_cmp_j": self._e_cmp_j} | after_training
        fresh = None if self.fresh_labels is None else self.fresh_labels.astype(np.int32)
        known = {"priority": self.priority, "meter": self.meter, "held_f_hz": self._held_f_hz, **measured}
        known |= {"features": True} if self._features else {}
        return DeviceReport(self.stored_labels.astype(np.int32), fresh, self.f_hz, self.beta, **known)

    def answer(
        self, arrays: ArrayRecord | None = None, metrics: MetricRecord | None = None, **after_training: Any
    ) -> Message:
        """The reply to the message, with the report on board; arrays and metrics as in any Flower app."""
        content = RecordDict()
        if arrays is not None:
            content["arrays"] = arrays
        if metrics is not None:
            content["metrics"] = metrics
        return self.reply(content, **after_training)

    def reply(self, content: RecordDict, **after_training: Any) -> Message:
        """The same with whatever records the app would send: all of them reach the strategy on the server."""
        if not self.scheduled:
            return Message(content=content, reply_to=self._message)
        sent = RecordDict({REPORT: self.report(**after_training).to_record(self.name), **content})
        if MODS in self._message.content.array_records:  # what modifiers of the whole app want in a reply
            sent[MODS], sent[f"{MODS}.metrics"] = ArrayRecord([np.ones(1, np.float32)]), MetricRecord()
        self._save()
        return Message(content=sent, reply_to=self._message)

    def _noisy(self, counts: NDArray, epsilon: float) -> NDArray:
        if self._server["deletes"]:
            raise DeviceError("noise on label counts needs a buffer that never deletes anything, such as keep")
        if not epsilon > 0:
            raise DeviceError(f"epsilon must be greater than 0, not {epsilon}")
        names = [f"noise-{part}" for part in NoisyCounts._fields]
        known = [np.array(self._saved[name]) for name in names if name in self._saved]
        noisy = NoisyCounts(*known) if known else NoisyCounts.empty(len(counts))
        noisy = noisy.tell(counts, epsilon, np.random.default_rng())  # unpredictable: a known seed hides nothing
        self._saved |= {name: part.tolist() for name, part in zip(names, noisy, strict=True)}
        return noisy.released

    def _save(self) -> None:
        """Into the state that Flower keeps for this node and run."""
        self._saved |= {"round": self.round, "stored-labels": self.stored_labels.tolist(), "f-hz": self.f_hz}
        if self.fresh_labels is not None:
            self._saved["fresh-labels"] = self.fresh_labels.tolist()
        if self._t_cmp_s is not None:
            self._saved["t-cmp-s"] = self._t_cmp_s
        if self._e_cmp_j is not None:
            self._saved["e-cmp-j"] = self._e_cmp_j
            self._saved["e-total-j"] = float(self._saved.get("e-total-j", 0.0)) + self._e_cmp_j
        self._context.state[STATE] = MetricRecord(self._saved)


def fitted(context: Context, message: Message) -> Nested:
    """What the server has settled for `data.features`, such as the centres of a sketch; nothing where it needs none.

    It comes with questions, and is kept in the node's state for the calls for training between them.
    """
    told, known = message.content.metric_records if message.has_content() else {}, context.state.metric_records
    if FITTED in told:
        known[FITTED] = told[FITTED]
    if FITTED in known:
        return unpacked(known[FITTED])
    if "features" in told.get(SERVER, {}):
        raise DeviceError("the node has lost what the server has settled for data.features; its next question has it")
    return {}


def _counts(
    held: Sequence[int] | NDArray | None,
    labels: Sequence[int] | NDArray | None,
    features: ArrayLike | None,
    classes: int,
    wanted: bool,
) -> NDArray:
    """Of the samples held, by label; or by cell, where features are wanted."""
    if (features is not None) != wanted:
        given, counted = ("label counts", "features") if wanted else ("features", "labels")
        raise DeviceError(f"the server counts {counted} (data.features), so that it cannot be given {given}")
    if sum(given is not None for given in (held, labels, features)) != 1:
        raise DeviceError("give either the label counts (held) or the labels of the samples that the device holds")
    if features is not None:
        rows = np.asarray(features, np.float64)
        rows = rows.reshape(-1, classes) if not rows.size else rows
        one_each = rows.ndim == 2 and rows.shape[1] == classes and ((rows == 0) | (rows == 1)).all()
        if not one_each or (rows.sum(axis=1) != 1).any():
            raise DeviceError(
                f"features must have a row per sample, of {classes} numbers, a single 1 among zeros, not {rows.shape}"
            )
        return rows.sum(axis=0).astype(np.int64)
    if labels is None:
        return np.asarray(held)
    found = np.asarray(labels, np.int64)
    if found.ndim != 1 or (found.size and not 0 <= found.min() <= found.max() < classes):
        said = f"labels must be a list of numbers from 0 to {classes - 1}, as the server has classes={classes}"
        raise DeviceError(f"{said}, not {np.shape(labels)}" if found.ndim != 1 else said)
    return np.bincount(found, minlength=classes)


def _configured_name(context: Context) -> str:
    for key in ("device-name", "partition-id"):
        if key in context.node_config:
            return str(context.node_config[key])
    raise DeviceError("the device has no name: give partition-id or device-name in --node-config")
