"""Paths of TR 38.901 between devices and a base station, from the package sionna-no-rt. The only file that knows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids, Reals
from feelstream.environment.base import Links
from feelstream.environment.tr38901 import DEVICE_M, NEAREST_M, SCENES
from feelstream.errors import ScenarioError, packages_of

SIONNA = ("sionna-no-rt", "sionna")  # the same modules; the second also traces rays


def versions() -> dict[str, str]:
    """Of the packages that make the paths; a sentence where they are not installed."""
    for name in SIONNA:
        with suppress(metadata.PackageNotFoundError):
            return {name: metadata.version(name), "torch": metadata.version("torch")}
    how = f"get it with pip install {packages_of('sionna')}"
    raise ScenarioError(f"world.channel.kind: tr38901 needs the package sionna-no-rt; {how}")


def drawn(links: Links, ids: Ids, samples: int, sample_s: float, seed: int) -> tuple[NDArray[np.complex128], Reals]:
    """The paths of some devices, (K, P, samples) with mean power 1, and their delays in s, (K, P).

    Each device is a world of its own: TR 38.901 also has neighbours with like clusters, which takes work by the cube of
    their number. One antenna without direction at either end; outdoors, and not in a car.
    """
    with _undisturbed(seed) as (torch, tr38901):
        channel = _channel(tr38901, links)
        many = len(ids)
        place = np.zeros((many, 1, 3))
        place[:, 0, :2], place[:, 0, 2] = _not_too_near(links.position_m[:, ids]).T, DEVICE_M
        velocity = np.zeros((many, 1, 3))
        velocity[:, 0, :2] = links.velocity_m_s[:, ids].T
        station = np.zeros((many, 1, 3))
        station[:, 0, 2] = SCENES[links.place].station_m
        nowhere = torch.zeros(many, 1, dtype=torch.bool)
        channel.set_topology(
            ut_loc=torch.from_numpy(place),
            bs_loc=torch.from_numpy(station),
            ut_orientations=torch.zeros(many, 1, 3, dtype=torch.float64),
            bs_orientations=torch.zeros(many, 1, 3, dtype=torch.float64),
            ut_velocities=torch.from_numpy(velocity),
            in_state=nowhere,
            los=torch.from_numpy(np.ascontiguousarray(links.seen[ids])).reshape(many, 1, 1),
            **({"in_car": nowhere} if links.place == "rma" else {}),
        )
        paths, delay_s = channel(samples, 1 / sample_s)
        return paths[:, 0, 0, 0, 0].numpy(), delay_s[:, 0, 0].numpy()


def _channel(tr38901: Any, links: Links) -> Any:
    """Without path loss and shadowing, which world.mobility has."""
    common = {"carrier_frequency": links.carrier_hz, "precision": "double", "device": "cpu"}
    antenna = tr38901.PanelArray(
        num_rows_per_panel=1,
        num_cols_per_panel=1,
        polarization="single",
        polarization_type="V",
        antenna_pattern="omni",
        **common,
    )
    made = {"umi": tr38901.UMi, "uma": tr38901.UMa, "rma": tr38901.RMa}[links.place]
    indoors = {} if links.place == "rma" else {"o2i_model": "low"}  # it must be said, and nobody is indoors
    return made(
        ut_array=antenna,
        bs_array=antenna,
        direction="uplink",
        enable_pathloss=False,
        enable_shadow_fading=False,
        **common,
        **indoors,
    )


def _not_too_near(position_m: Reals) -> Reals:
    """(2, K), where those within 10 m are put at 10 m in their direction, as their path loss is."""
    apart_m = np.hypot(*position_m)
    away = np.divide(position_m, apart_m, out=np.array([[1.0], [0.0]]) * np.ones_like(apart_m), where=apart_m > 0)
    return np.where(apart_m < NEAREST_M, NEAREST_M * away, position_m)


@contextmanager
def _undisturbed(seed: int) -> Iterator[tuple[Any, Any]]:
    """PyTorch and Sionna's module with chance from this seed alone; nobody else's random numbers or threads change.

    One thread, so that sums are taken in one order.
    """
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        from sionna.phy import config  # pyright: ignore[reportMissingImports]
        from sionna.phy.channel import tr38901  # pyright: ignore[reportMissingImports]

        before, theirs = config.seed, config.torch_rng("cpu").get_state()
        try:
            torch.set_num_threads(1)
            config.seed = seed
            yield torch, tr38901
        finally:
            config.seed = before
            config.torch_rng("cpu").set_state(theirs)
            torch.set_num_threads(threads)
