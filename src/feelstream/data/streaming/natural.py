"""The natural partition: each sample stays with whoever recorded it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.data.recording import Recording
from feelstream.data.streaming.partition import Labels, Owner, Partition
from feelstream.errors import ScenarioError


class Natural(Partition):
    """Device k holds what owner k of the data set recorded; for data sets that tell the owners (hapt, or owner_train).

    Edge rule: with fewer devices than owners, the samples of the owners K, K + 1, … reach nobody.
    """

    tag: ClassVar[str] = "natural"

    def split(self, labels: Labels, devices: int, classes: int, rng: np.random.Generator) -> Owner:
        raise ScenarioError(
            "data.partition.kind: natural needs a data set that tells who recorded each sample: hapt, or an .npz file "
            "with owner_train"
        )

    def owners(
        self, recording: Recording, labels: Labels, devices: int, classes: int, rng: np.random.Generator
    ) -> Owner:
        if recording.owner is None:
            return self.split(labels, devices, classes, rng)  # which says what is missing
        known = int(recording.owner.max()) + 1
        if devices > known:
            raise ScenarioError(
                f"system.devices: must be at most {known} with the partition natural, one for each owner in the data "
                f"set, not {devices}"
            )
        return np.where(recording.owner < devices, recording.owner, np.int32(-1)).astype(np.int32)
