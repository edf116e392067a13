"""What a run says of learning and reports, read from run.json."""

from __future__ import annotations

from feelstream.errors import RunError
from feelstream.verification.ours import (
    ASKS_EVERYONE,
    KNOWS_PROBABILITY,
    OUR_LOCAL_TRAININGS,
    OUR_POLICIES,
    OUR_SERVER_UPDATES,
    TRAINS_FIRST,
)
from feelstream.verification.promises import Promises
from feelstream.verification.section import Section
from feelstream.verification.stored import Reports


def reports_of(scenario: Section, policy: str, promised: Promises) -> Reports | None:
    """What reports take, where a policy of ours asks for them, or a user's own by its promise."""
    trains = policy in TRAINS_FIRST
    if policy not in OUR_POLICIES:
        trains = "update_norm" in promised.names("needs")
    probes = promised.names("needs") - {"stored_labels", "oracle_gain", "equal_updates"}
    asks = trains or policy in ASKS_EVERYONE or (policy not in OUR_POLICIES and bool(probes))
    if not asks:
        return None
    table, round_s = scenario["reports"], scenario["system"]["round_s"].positive()
    slot_s, cycles = table["slot_s"].positive(), table["cycles"].number()
    if not slot_s < round_s or cycles < 0:
        raise RunError("run.json: reports.slot_s must be below system.round_s, and reports.cycles at least 0.")
    return Reports(slot_s, cycles, table["bits"].positive(), trains)


def server_update_of(server: Section | None, policy: str) -> str:
    """Its name; weights by inverse probability need a policy of ours that knows it. Runs from before are of fedavg."""
    if server is None:
        return "fedavg"
    name = server["kind"].name_of()
    if name == "inverse_probability" and policy in OUR_POLICIES and policy not in KNOWS_PROBABILITY:
        raise RunError(f"run.json: {server.name}.kind is {name}, and {policy} knows no probabilities.")
    return name if name not in OUR_SERVER_UPDATES else server_update_of(server.get("inner"), policy)


def local_training_of(local: Section | None) -> str:
    """Its name; the settings of ours must be possible ones. Runs from before it had a table are of sgd."""
    if local is None:
        return "sgd"
    name = local["kind"].name_of()
    if name not in OUR_LOCAL_TRAININGS:
        return name
    local["lr"].positive()
    for field in ("steps", "batch", "every"):
        local[field].whole()
    for field in ("momentum", "weight_decay", "prox"):
        if local[field].number() < 0:
            raise RunError(f"run.json: {local.name}.{field} must be at least 0, not {local[field].tree!r}.")
    local["sampling"].one_of("replacement", "epoch")
    local["schedule"].one_of("constant", "step", "cosine", "inverse")
    local["keep"].one_of("none", "momentum", "scaffold")
    return name
