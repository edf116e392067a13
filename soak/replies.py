"""Clients of a federation that answer with anything: the run goes on, the model stays a model, the honest count."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import feelstream as fs
from soak.attack import Attack, Lost

if TYPE_CHECKING:
    from flwr.app import ArrayRecord, Context, Message, RecordDict

    from feelstream.flower.local_grid import Answer

ROUNDS = 3
SETTINGS = [
    "system.devices=4", "policy.size=4", "policy.V=inf", "data.eligible=with_data", "learning.engine=none",
    "radio.fading=none", "cpu.frequency_hz=[1e9, 1.5e9]",
]  # fmt: skip
HONEST = {1: 2.0, 2: 4.0}  # devices, and by how much they move every weight
START = {"w": np.zeros((2, 2), np.float32), "steps": np.array([0], np.int64)}
NUMBERS = [0, 1, -1, 2**31, 2**62, -(2**62), 10**400, 0.5, 1e-320, 1e30, 1e308, -1e308, float("nan"), float("inf")]
WORDS = ["", "0", "1", "2", "9", "x" * 10**5, "\x00", "\u202e", "../..", "<script>", "nan", "a\nb"]
OTHERS = [True, b"", b"\x80\x04K\x01.", [], [1], [2, 1, 0], [2**40, 0, 0], [-1, 1, 0], [1.5, 0.0, 0.0], ["2"], [b"2"]]
DTYPES = ["float32", "float64", "float16", "int8", "uint64", "complex64", "bool", "<U3", "datetime64[s]", "V4", "O"]
SHAPES = [(), (0,), (1,), (2, 2), (4,), (2, 3), (1, 2, 2), (2**20, 2**20), (-1, 2)]


class Replies(Attack):
    """One or two of four devices change what they say, in queries and in training, and sometimes say nothing."""

    name = "replies"

    def prepare(self) -> None:
        try:
            import flwr  # noqa: F401
        except ImportError:
            sys.exit("the attack `replies` needs Flower: pip install 'feelstream[flower]', or leave it out")
        logging.getLogger("flwr").setLevel(logging.CRITICAL)

    def trial(self, directory: Path) -> str:
        from flwr.app import Array, ArrayRecord
        from flwr.serverapp.strategy import FedAvg

        from feelstream.flower import Scheduled
        from feelstream.flower.local_grid import LocalGrid

        self.said: list[str] = []
        grid = LocalGrid()
        hostile = (0,) if self.draw.random() < 0.5 else (0, 3)
        for device in range(4):
            honest = self._client(HONEST.get(device, 50.0))
            grid.add(10 + device, {"partition-id": device}, self._hostile(honest) if device in hostile else honest)
        out = directory / "run"
        strategy = Scheduled(FedAvg(fraction_evaluate=0.0), fs.preset("tiny", SETTINGS), classes=3, wait_s=0.0, out=out)
        start = ArrayRecord({name: Array(values) for name, values in START.items()})
        try:
            result = strategy.start(grid, start, num_rounds=ROUNDS)
        finally:
            self.what = ", ".join(self.said)
        self._check(result.arrays, out)
        return self.what

    def _check(self, arrays: ArrayRecord, out: Path) -> None:
        if list(arrays) != list(START):
            raise Lost(f"arrays {list(arrays)}")
        for name, array in arrays.items():
            values = array.numpy()
            if (values.shape, values.dtype) != (START[name].shape, START[name].dtype):
                raise Lost(f"{name} has become {values.dtype} {values.shape}")
            if not np.isfinite(values).all():
                raise Lost(f"{name} is no longer finite")
        devices = fs.read(out).devices
        assert devices is not None
        for device in HONEST:
            own = devices.filter(devices["device"] == device)
            if own["transmitted"].sum() != ROUNDS:
                raise Lost(f"the honest device {device} counted in {own['transmitted'].sum()} of {ROUNDS} rounds")
        report = fs.verify(out)
        if not report.ok:
            raise Lost(f"verify disagrees: {' '.join(str(report.disagreement).split())}")

    def _client(self, step: float) -> Answer:
        from flwr.app import Array, ArrayRecord, MetricRecord

        from feelstream.flower import Device

        def answer(context: Context, message: Message) -> Message | None:
            round = message.content.metric_records["feelstream.server"]["round"]
            assert isinstance(round, int)
            device = Device(context, message, [2 * round, round, 0], f_hz=1.2e9, beta=1.0, meter=None)
            arrays = message.content.array_records.get("arrays")
            if arrays is None:
                return device.answer()
            trained = {name: Array((each.numpy() + step).astype(each.numpy().dtype)) for name, each in arrays.items()}
            return device.answer(ArrayRecord(trained), MetricRecord({"loss": step}))

        return answer

    def _hostile(self, honest: Answer) -> Answer:
        from flwr.app import Error, Message

        def answer(context: Context, message: Message) -> Message | None:
            reply = honest(context, message)
            if reply is None or self.draw.random() < 0.3:
                return reply
            if self.draw.random() < 0.1:
                self.said.append("silence")
                return None
            if self.draw.random() < 0.1:
                self.said.append("an error")
                return Message(Error(code=self.draw.choice([0, 1, 2**31 - 1]), reason=self._word()), reply_to=message)
            for _ in range(self.draw.randint(1, 3)):
                change = self.draw.choice([self._field, self._field, self._metric, self._array, self._record])
                self.said.append(f"{message.metadata.message_type}: {change(reply.content)}")
            return reply

        return answer

    def _word(self) -> str:
        return self.draw.choice(WORDS)

    def _value(self) -> Any:
        return self.draw.choice([*NUMBERS, *WORDS, *OTHERS])

    def _put(self, record: Any, key: str, value: Any) -> str:
        """Flower's own records refuse some values on the client already."""
        try:
            record[key] = value
        except (TypeError, ValueError):
            return f"{key} as it was"
        return f"{key} = {str(value)[:20]!r}"

    def _field(self, content: RecordDict) -> str:
        for record in content.config_records.values():
            key = self.draw.choice([*record, "name", "losses", "priority", "e-cmp-j", "t-cmp-s", "gain", "colour"])
            if key in record and self.draw.random() < 0.2:
                del record[key]
                return f"no {key}"
            value = self._value()
            # Without authentication a name belongs to whoever uses it (docs/deployment.md), so nobody takes another's.
            return self._put(record, key, "9" if key == "name" and value in map(str, HONEST) else value)
        return "no report"

    def _metric(self, content: RecordDict) -> str:
        for record in content.metric_records.values():
            return self._put(record, self.draw.choice([*record, "num-examples", "loss"]), self._value())
        return "no metrics"

    def _array(self, content: RecordDict) -> str:
        from flwr.app import Array

        for record in content.array_records.values():
            name = self.draw.choice([*record, "extra"])
            known = record[name] if name in record else Array(START["w"])
            data = bytearray(known.data)
            match self.draw.randrange(4):
                case 0:
                    data[self.draw.randrange(len(data))] ^= 1 << self.draw.randrange(8)
                case 1:
                    del data[self.draw.randrange(len(data)) :]
                case 2:
                    data += self.draw.randbytes(self.draw.randint(1, 50))
                case _:
                    data = bytearray(self.draw.randbytes(self.draw.randint(0, 200)))
            dtype, shape = str(known.dtype), tuple(known.shape)
            if self.draw.random() < 0.3:
                dtype, shape = self.draw.choice(DTYPES), self.draw.choice(SHAPES)
            record[name] = Array(dtype, shape, self.draw.choice([known.stype, known.stype, "pickle"]), bytes(data))
            return f"bytes of {name}"
        return "no arrays"

    def _record(self, content: RecordDict) -> str:
        from flwr.app import ArrayRecord, ConfigRecord, MetricRecord

        made: list[Callable[[], Any]] = [ArrayRecord, ConfigRecord, lambda: MetricRecord({"loss": 1.0})]
        key = self.draw.choice([*content, "more"])
        if key in content and self.draw.random() < 0.4:
            del content[key]
            return f"no record {key}"
        content[key] = self.draw.choice(made)()
        return f"another record {key}"
