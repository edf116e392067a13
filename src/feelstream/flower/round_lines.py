"""A line of JSON for every round, for whatever reads logs: the logger `flwr.feelstream.rounds`.

{"round": 7, "at": "2026-01-31T12:00:00+00:00", "seconds": 12.5, "scheduled": ["north", "south"],
 "transmitted": ["north"], "failed": {"south": "no reply within the deadline of 60 s"}, "not_waited_for": [],
 "late": [], "timeout_s": 60.0, "energy_j": 3.25, "wasted_j": 1.5,
 "queue_max_j": 0.5, "reliability_min": 0.5, "meters": {"RAPL": 2}}
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from feelstream.flower.deployment import Deployment
from feelstream.loop.round import RoundRecord

lines = logging.getLogger("flwr.feelstream.rounds")


def round_line(
    record: RoundRecord, deployment: Deployment, seconds: float, timeout_s: float, late: Sequence[int] = ()
) -> str:
    """What a round was: when, how long, who and why not, what it cost. Energy is the sum over all devices.

    late: devices of which a reply to an earlier round has come meanwhile.
    """
    schedule, sent, name = record.decision.schedule, record.transmission.sent, deployment.directory.name
    failed = deployment.patience.failed
    reliability = record.observation.reliability
    return json.dumps(
        {
            "round": record.observation.round,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "scheduled": [name(int(device)) for device in schedule],
            "transmitted": [name(int(device)) for device in schedule[sent]],
            "failed": {name(k): failed.get(k, "") for k in map(int, schedule[~sent]) if k not in deployment.cut},
            "not_waited_for": [name(device) for device in sorted(deployment.cut)],
            "late": [name(device) for device in late],
            "timeout_s": round(timeout_s, 3),
            "energy_j": float(record.energy_j.sum()),
            "wasted_j": float(record.energy_j[schedule[~sent]].sum()),
            "queue_max_j": float(record.queue_next_j.max()),
            "reliability_min": 1.0 if reliability is None else float(reliability.min()),
            "meters": dict(Counter(deployment.reporting.meters.values())),
        },
        ensure_ascii=False,
    )
