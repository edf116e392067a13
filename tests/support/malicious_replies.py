"""Replies that a hostile or broken client may send: each a change to the honest reply to a call for training."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict

W = np.zeros((2, 2), np.float32)
STEPS = np.array([0], np.int64)
Change = Callable[[Message], Message | Error]


def _npy(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def _header(descr: str, shape: str, body: bytes = b"") -> bytes:
    """A file of one array whose header says anything at all."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def content(change: Callable[[RecordDict], Any]) -> Change:
    def changed(reply: Message) -> Message:
        change(reply.content)
        return reply

    return changed


def arrays(**values: Any) -> Change:
    """Arrays in place of the honest ones; bytes are sent under an honest-looking label."""

    def put(found: RecordDict) -> None:
        both = {"w": W, "steps": STEPS} | values
        labels = {"w": ("float32", (2, 2)), "steps": ("int64", (1,))}
        record = ArrayRecord()
        for name, value in both.items():
            dtype, shape = labels.get(name, ("float32", (2, 2)))
            record[name] = Array(dtype, shape, "numpy.ndarray", value if isinstance(value, bytes) else _npy(value))
        found["arrays"] = record

    return content(put)


def labelled(dtype: str, shape: tuple[int, ...], stype: str) -> Change:
    """Honest bytes under another label."""

    def put(found: RecordDict) -> None:
        found["arrays"] = ArrayRecord({"w": Array(dtype, shape, stype, _npy(W)), "steps": Array(STEPS)})

    return content(put)


def report(**values: Any) -> Change:
    def put(found: RecordDict) -> None:
        for key, value in values.items():
            record, key = found.config_records["feelstream"], key.replace("_", "-")
            if value is None:
                del record[key]
            else:
                record[key] = value

    return content(put)


def metrics(values: dict[str, Any]) -> Change:
    return content(lambda found: found.update({"metrics": MetricRecord(values)}))


def _second(found: RecordDict, key: str, record: Any) -> None:
    found[key] = record


STRUCTURED = np.zeros((2, 2), [("a", np.float32), ("b", np.int8)])
BAD: dict[str, Change] = {
    # what the bytes decode to
    "complex": arrays(w=W.astype(np.complex64)),
    "text": arrays(w=np.full((2, 2), "9")),
    "bytes as items": arrays(w=np.full((2, 2), b"9")),
    "dates": arrays(w=np.zeros((2, 2), "datetime64[s]")),
    "durations": arrays(w=np.zeros((2, 2), "timedelta64[s]")),
    "structured": arrays(w=STRUCTURED),
    "void": arrays(w=np.zeros((2, 2), "V4")),
    "truth values": arrays(w=np.ones((2, 2), bool)),
    "float64 beyond float32": arrays(w=np.full((2, 2), 1e300)),
    "longdouble beyond float32": arrays(w=np.full((2, 2), 1e300, np.longdouble)),
    "whole numbers as floats": arrays(steps=np.array([0.5])),
    "whole numbers too large": arrays(steps=np.array([2**64 - 1], np.uint64)),
    "not a number": arrays(w=np.full((2, 2), np.nan, np.float32)),
    "one not a number": arrays(w=np.array([[0, 0], [0, np.nan]], np.float32)),
    "infinite": arrays(w=np.full((2, 2), np.inf, np.float32)),
    "minus infinite": arrays(w=np.full((2, 2), -np.inf, np.float32)),
    "half-precision infinity": arrays(w=np.full((2, 2), np.inf, np.float16)),
    # their shape
    "wider": arrays(w=np.zeros((2, 3), np.float32)),
    "flat": arrays(w=np.zeros(4, np.float32)),
    "a scalar": arrays(w=np.array(0, np.float32)),
    "one more axis": arrays(w=np.zeros((1, 2, 2), np.float32)),
    "empty": arrays(w=np.zeros((0, 2), np.float32)),
    "counter as a scalar": arrays(steps=np.array(0)),
    # the bytes themselves
    "no array": arrays(w=b"not an array"),
    "no bytes": arrays(w=b""),
    "only a magic number": arrays(w=b"\x93NUMPY"),
    "cut short": arrays(w=_npy(W)[:-4]),
    "more than it says": arrays(w=_npy(W) + b"\0" * 4),
    "a terabyte by its header": arrays(w=_header("'<f4'", "(1000000, 1000000)")),
    "a negative shape": arrays(w=_header("'<f4'", "(-2, -2)", bytes(16))),
    "a shape that overflows": arrays(w=_header("'<f4'", "(4294967296, 4294967296)")),
    "pickled objects": arrays(w=_header("'|O'", "(2, 2)", b"cposix\nsystem\n(S'true'\ntR.")),
    "code in the header": arrays(w=_header("__import__('os')", "(2, 2)", bytes(16))),
    "an unknown version": arrays(w=b"\x93NUMPY\x09\x00" + _npy(W)[8:]),
    "zipped": arrays(w=b"PK\x03\x04" + bytes(200)),
    "a huge header": arrays(w=b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little")),
    # their label
    "another serialisation": labelled("float32", (2, 2), "pickle"),
    "no serialisation": labelled("float32", (2, 2), ""),
    # the set of arrays
    "an array too few": content(lambda found: found.update({"arrays": ArrayRecord({"w": Array(W)})})),
    "an array too many": arrays(extra=W),
    "other names": content(lambda found: found.update({"arrays": ArrayRecord({"v": Array(W), "s": Array(STEPS)})})),
    "no arrays in it": content(lambda found: found.update({"arrays": ArrayRecord()})),
    "no arrays": content(lambda found: found.pop("arrays")),
    "two sets of arrays": content(lambda found: _second(found, "more", ArrayRecord({"w": Array(W)}))),
    # metrics
    "two sets of metrics": content(lambda found: _second(found, "more", MetricRecord({"loss": 1.0}))),
    "a metric as a list": metrics({"loss": [1.0, 2.0]}),
    "a missing metric": metrics({}),
    "a metric beyond any float": metrics({"loss": 1.0, "num-examples": 10**400}),
    "a negative weight": metrics({"loss": 1.0, "num-examples": -5}),
    "a weight that is no number": metrics({"loss": 1.0, "num-examples": math.nan}),
    "an infinite weight": metrics({"loss": 1.0, "num-examples": math.inf}),
    "a list of weights": metrics({"loss": 1.0, "num-examples": [1, 2]}),
    # the report
    "no report": content(lambda found: found.pop("feelstream")),
    "a report of another kind": content(lambda found: found.update({"feelstream": MetricRecord({"f-hz": 1e9})})),
    "an empty report": content(lambda found: found.update({"feelstream": ConfigRecord()})),
    "another's name": report(name="1"),
    "an empty name": report(name=""),
    "a name that is a number": report(name=0),
    "a long name": report(name="x" * 10**6),
    "counts that shrank": report(stored_labels=[0, 0, 0]),
    "negative counts": report(stored_labels=[-2, 1, 0]),
    "counts beyond 32 bits": report(stored_labels=[2**40, 1, 0]),
    "too few counts": report(stored_labels=[2]),
    "counts as text": report(stored_labels=["2", "1", "0"]),
    "counts as bytes": report(stored_labels=b"\x02\x01\x00"),
    "truth values as counts": report(stored_labels=[True, True, False]),
    "no counts": report(stored_labels=None),
    "an impossible frequency": report(f_hz=1e30),
    "a frequency that is no number": report(f_hz=math.nan),
    "a changed mean gain": report(beta=1.1),
    "a negative priority": report(priority=-1.0),
    "a priority beyond reason": report(priority=1e30),
    "a priority that is no number": report(priority=math.nan),
    "a priority as text": report(priority="highest"),
    "a negative gain": report(gain=-1.0),
    "an infinite gain": report(gain=math.inf),
    "a gain beyond reason": report(gain=1e300),
    "a gain beyond any float": report(gain=10**400),
    "a meter with a long name": report(meter="x" * 10**6),
    "a meter that is a number": report(meter=3.0),
    "negative losses": report(losses=[-1.0]),
    "losses that are text": report(losses=["1"]),
    "an error": lambda reply: Error(code=0, reason="out of memory"),
}  # fmt: skip

# What costs no update, though it is wrong.
HARMLESS: dict[str, Change] = {
    "a metric that is no number": metrics({"loss": math.nan}),
    "an infinite metric": metrics({"loss": math.inf}),
    "a field too many": report(favourite_colour="red"),
}

# A broken meter: what it shows is left aside, and the update counts.
ODD_MEASUREMENTS: dict[str, Change] = {
    "negative energy": report(e_cmp_j=-1.0),
    "energy beyond reason": report(e_cmp_j=1e30),
    "energy that is no number": report(e_tr_j=math.nan),
    "energy as text": report(e_cmp_j="much"),
    "negative time": report(t_cmp_s=-1.0),
    "endless time": report(t_tr_s=math.inf),
    "time beyond any float": report(t_cmp_s=10**400),
}
