"""A hypothesis strategy for legal scenarios of every kind, small enough to play in milliseconds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

CLASSES = 10


def tables(trace_file: str) -> st.SearchStrategy[dict[str, Any]]:
    """Scenario tables; a few of them are refused (an update that never fits), which tests pass over."""
    return st.integers(1, 8).flatmap(lambda devices: _scenario(devices, trace_file))


def _scenario(devices: int, trace_file: str) -> st.SearchStrategy[dict[str, Any]]:
    sizes = st.integers(1, devices)
    budget = st.sampled_from([0.0, 5e-4, 0.1, 3.0])
    return st.fixed_dictionaries(
        {
            "system": st.fixed_dictionaries(
                {
                    "devices": st.just(devices),
                    "rounds": st.integers(1, 7),
                    "round_s": st.sampled_from([0.35, 1.0, 4.0]),
                    "energy_budget_j": budget | st.lists(budget, min_size=devices, max_size=devices),
                }
            ),
            "cpu": st.fixed_dictionaries({"frequency_hz": st.sampled_from([[2e7, 1.52e9], [1.3e9, 1.3e9]])}),
            "radio": _radio(),
            "costs": st.sampled_from(
                [
                    {},
                    {},
                    {"cycles_per_sample": 3e6},
                    {"download_bits": 1e6, "download_bit_per_s": 5e6, "receive_power_w": 0.1},
                ]
            ),
            "data": _drawn(devices, trace_file) | _recorded(devices, trace_file),
            "policy": _lyapunov(sizes) | st.fixed_dictionaries({"name": st.just("random"), "size": sizes}),
            "learning": st.fixed_dictionaries({"engine": st.just("none"), "eval_every": st.integers(1, 5)}),
        }
    )


def _drawn(devices: int, trace_file: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "dataset": st.just("synthetic"),
            "samples": st.sampled_from([CLASSES, 33, 150]),
            "fresh": st.sampled_from(["since_use", "per_round"]),
            "partition": _partition(devices),
            "arrivals": _arrivals(trace_file),
            "buffer": _buffer(),
        }
    )


def _recorded(devices: int, trace_file: str) -> st.SearchStrategy[dict[str, Any]]:
    """The natural stream that lies beside the trace, with recorded owners, recorded times, or both."""
    natural = {"kind": "natural"}
    arrivals = [
        {"kind": "recorded", "speed": speed, "start": start}
        for speed in ("fit", 1.0, 7.5)
        for start in ("together", "spread")
    ]
    both = st.tuples(st.just(natural) | _partition(devices), st.sampled_from(arrivals))
    owners = _drawn(devices, trace_file).map(lambda data: (natural, data["arrivals"]))
    file = str(Path(trace_file).with_name("recorded.npz"))
    return st.tuples(_drawn(devices, trace_file), both | owners).map(
        lambda made: made[0] | {"dataset": file, "partition": made[1][0], "arrivals": made[1][1]}
    )


def _radio() -> st.SearchStrategy[dict[str, Any]]:
    # The second band is narrow: an update takes a large part of the round, and admission drops devices.
    bands = [{}, {"bandwidth_hz": 1e6, "received_power_dbm": -36.0}, {"received_power_dbm": 900.0}]
    rest = st.fixed_dictionaries(
        {
            "fading": st.sampled_from(["rayleigh", "none"]),
            "admission": st.sampled_from(["paper", "largest"]),
            "link_margin": st.sampled_from([1.0, 3.0, 1e6]),
            "rate_discount": st.sampled_from([0.2, 1.0, 5.0]),
            "gain_db": st.sampled_from([[-5.0, 3.0], [0.0, 0.0], [-900.0, 900.0]]),
            "power_max_w": st.sampled_from([None, 0.7]),
            "block_bits": st.sampled_from([0.0, 0.0, 5e3]),
        }
    )
    return st.tuples(st.sampled_from(bands), rest).map(lambda both: both[0] | both[1])


def _partition(devices: int) -> st.SearchStrategy[dict[str, Any]]:
    kinds: list[dict[str, Any]] = [
        {"kind": "iid"},
        {"kind": "digits", "per_device": 1},
        {"kind": "digits", "per_device": 1, "sizes": "equal"},
    ]
    kinds += [{"kind": "dirichlet", "alpha": alpha} for alpha in (0.01, 1.0)]
    if devices >= 2:
        kinds.append({"kind": "minority", "share": 0.5, "labels": [0, 7]})
    return st.sampled_from(kinds)


def _arrivals(trace_file: str) -> st.SearchStrategy[dict[str, Any]]:
    kinds: list[dict[str, Any]] = [
        {"kind": "truncated_normal", "sigma": 0.03},
        {"kind": "uniform"},
        {"kind": "poisson", "rate": 0.3},
        {"kind": "bursts", "rate": 4.0, "p_on": 0.3},
    ]
    orders = st.sampled_from(["label", "label_from_any", "label_ascending", "label_random", "shuffled", "markov"])
    ordered = st.tuples(st.sampled_from(kinds), orders).map(lambda both: both[0] | {"order": both[1]})
    return ordered | st.just({"kind": "trace", "path": trace_file})


def _buffer() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {"kind": "keep"},
            {"kind": "window", "rounds": 2},
            {"kind": "fifo", "capacity": 3},
            {"kind": "reservoir", "capacity": 4},
            {"kind": "use_once"},
        ]
    )


def _lyapunov(sizes: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "name": st.just("lyapunov"),
            "size": sizes,
            "V": st.sampled_from([1e-3, 0.05, 10.0, math.inf]),
            "cardinality": st.sampled_from(["exact", "cap", "free"]),
            "metric": st.sampled_from(["combined", "amount", "dissimilarity"]),
        }
    )
