"""The unpickler that runs nothing."""

from __future__ import annotations

import pickle
import pickletools
from contextlib import suppress

import numpy as np
import pytest

from feelstream.data.datasets import inert
from feelstream.data.datasets.inert import STAND_INS, Kept, KeptArray, RefusedError


class Evil:
    def __reduce__(self):
        return print, ("this must not be printed",)


@pytest.mark.parametrize(
    "value",
    [Evil(), np.arange(3), np.float64(1.0), {1: [Evil()]}, print, np.dtype("f8"), range(3), {1}, 1j],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_refuses_every_global_of_todays_pickles(value: object, protocol: int, capsys: pytest.CaptureFixture) -> None:
    raw = pickle.dumps(value, protocol)
    named = any(op.name in ("GLOBAL", "STACK_GLOBAL") for op, _, _ in pickletools.genops(raw))
    if named:
        # Protocol 2 has names of Python 2, some of which are those of stand-ins: a stand-in then, nothing made.
        with suppress(RefusedError):
            assert isinstance(inert.read(raw), Kept | KeptArray | type(None) | dict | list)
    else:
        assert inert.read(raw) == value
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "name",
    [
        "os system", "builtins eval", "__builtin__ eval", "numpy load", "copyreg _reconstructor", "_codecs decode",
        "feelstream.data.datasets.inert read", "numpy.core.multiarray fromfile",
    ],
)  # fmt: skip
def test_refuses_other_names(name: str) -> None:
    module, attribute = name.split()
    with pytest.raises(RefusedError, match=f"it asks for {module}.{attribute}"):
        inert.read(f"c{module}\n{attribute}\n(S'echo'\ntR.".encode())


@pytest.mark.parametrize("raw", [b"", b".", b"abc", b"\x80\x05", b"Pid\n.", pickle.dumps([1, 2])[:-3], b"(lp0\nR."])
def test_damaged_pickles_are_refused(raw: bytes) -> None:
    with pytest.raises(RefusedError):
        inert.read(raw)


def kept(shape: object, code: object, data: object, order: object = "<", fortran: bool = False) -> KeptArray:
    kind, array = inert.KeptType(code), KeptArray()
    kind.__setstate__((3, order, None, None, None, -1, -1, 0))
    array.__setstate__((1, shape, kind, fortran, data))
    return array


def test_an_array_is_made_of_its_bytes() -> None:
    expected = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(kept((2, 3), "f8", expected.tobytes()).numbers(), expected)
    assert np.array_equal(kept((2, 3), "f8", expected.tobytes("F"), fortran=True).numbers(), expected)
    assert kept((2,), "i8", np.array([-1, 4]).tobytes()).numbers().tolist() == [-1, 4]


@pytest.mark.parametrize(
    "wrong",
    [
        kept((2,), "O8", ["a", "b"]), kept((2,), "O8", bytes(16)), kept((3,), "f8", bytes(16)), kept((-2,), "f8", b""),
        kept((10**12,), "f8", bytes(16)), kept("ab", "f8", bytes(16)), kept((2,), "f8", bytes(16), ">"),
        kept((2,), "V8", bytes(16)), kept((2,), None, bytes(16)), KeptArray(),
    ],
)  # fmt: skip
def test_an_array_of_anything_else_is_refused(wrong: KeptArray) -> None:
    with pytest.raises(RefusedError):
        wrong.numbers()


def test_stand_ins_belong_to_this_module() -> None:
    """Nothing of NumPy, pandas or the standard library is ever handed to a pickle."""
    assert {value.__module__ for value in STAND_INS.values() if value is not None} == {inert.__name__}
