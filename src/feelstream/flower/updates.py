"""Models as they travel: decoded and checked when they come from outside, and in a form every strategy can average."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.lib import format as npy
from numpy.typing import NDArray

from feelstream.flower.report import ReportError

Model = Mapping[str, NDArray]
NUMPY = "numpy.ndarray"
HEADER_BYTES = 10_000
# Which decoded kinds may become which kind of the model; "same kind or narrower", so that no meaning is lost.
CASTS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}


def read_model(arrays: ArrayRecord) -> dict[str, NDArray]:
    """The server's own model as arrays."""
    return {name: array.numpy() for name, array in arrays.items()}


def write_model(arrays: Model) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(values)) for name, values in arrays.items()})


def checked_update(found: ArrayRecord | None, model: Model) -> dict[str, NDArray]:
    """The model in a reply: the names and shapes of ours, our types after casting, finite; else ReportError.

    Only what the bytes decode to counts: the type and shape that a reply claims beside them may be anything.
    """
    if found is None:
        raise ReportError("it carries no arrays")
    if found.keys() != model.keys():
        raise ReportError("its arrays have other names than the model's")
    return {name: _decoded(name, found[name], wanted) for name, wanted in model.items()}


def _decoded(name: str, array: Array, wanted: NDArray) -> NDArray:
    if array.stype != NUMPY:
        raise ReportError(f"array '{name}' is serialised as '{array.stype[:40]}', not as '{NUMPY}'")
    stream = BytesIO(array.data)
    try:
        version = npy.read_magic(stream)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        shape, _, dtype = read_header(stream, max_header_size=HEADER_BYTES)
    except Exception as problem:  # bytes from outside may be anything
        raise ReportError(f"array '{name}' cannot be decoded") from problem
    # Before anything is allocated by what the header says.
    if shape != wanted.shape or dtype.hasobject or dtype.kind not in CASTS.get(wanted.dtype.kind, ""):
        raise ReportError(f"array '{name}' is {dtype} {shape}, not {wanted.dtype} {wanted.shape}")
    if len(array.data) - stream.tell() != dtype.itemsize * wanted.size:
        raise ReportError(f"array '{name}' does not have as many bytes as its shape needs")
    stream.seek(0)
    try:
        with np.errstate(all="ignore"):  # what overflows is found below
            values = npy.read_array(stream, allow_pickle=False)
            cast = np.asarray(values.astype(wanted.dtype))
    except Exception as problem:
        raise ReportError(f"array '{name}' cannot be decoded") from problem
    if wanted.dtype.kind in "iu":
        if (cast != values).any():
            raise ReportError(f"array '{name}' holds whole numbers that do not fit {wanted.dtype}")
    elif not np.isfinite(cast).all():
        raise ReportError(f"array '{name}' is not finite as {wanted.dtype}")
    return cast


def needs_floats(model: Model) -> bool:
    """Whether a strategy that computes with the model could stumble over its types or its scalars."""
    return any(values.dtype.kind != "f" or values.ndim == 0 for values in model.values())


def as_floats(model: Model) -> dict[str, NDArray]:
    """Whole numbers and truth values as float64, scalars as vectors of one; all else as it is."""
    return {
        name: np.atleast_1d(values if values.dtype.kind == "f" else values.astype(np.float64))
        for name, values in model.items()
    }


def as_model(found: ArrayRecord, model: Model) -> dict[str, NDArray]:
    """What a strategy made of such floats, with the shapes and types of the model; ReportError if that cannot be.

    Whole numbers are rounded, and a truth value is true from one half on.
    """
    if found.keys() != model.keys():
        raise ReportError("the aggregated arrays have other names than the model's")
    return {name: _restored(name, found[name].numpy(), wanted) for name, wanted in model.items()}


def _restored(name: str, values: NDArray, wanted: NDArray) -> NDArray:
    if values.size != wanted.size or values.dtype.kind not in "fiub":
        raise ReportError(f"the aggregated array '{name}' is {values.dtype} {values.shape}, not of the model's shape")
    values = values.reshape(wanted.shape)
    if wanted.dtype.kind == "b":
        return np.asarray(values >= 0.5)
    if wanted.dtype.kind in "iu":
        limits = np.iinfo(wanted.dtype)
        values = np.rint(values) if values.dtype.kind == "f" else values
        if not ((values >= limits.min) & (values < float(limits.max) + 1)).all():
            raise ReportError(f"the aggregated array '{name}' does not fit {wanted.dtype}")
        return np.asarray(values.astype(wanted.dtype))
    with np.errstate(all="ignore"):
        cast = np.asarray(values.astype(wanted.dtype))
    if not np.isfinite(cast).all():
        raise ReportError(f"the aggregated array '{name}' is not finite")
    return cast
