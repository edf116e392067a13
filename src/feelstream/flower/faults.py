"""Failures to rehearse: a client that answers late, or reports nonsense, because its node-config says so."""

from __future__ import annotations

import time

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict

from feelstream.flower.report import REPORT


def with_fault(context: Context, message: Message, reply: Message) -> Message:
    """`--node-config "fault='slow'"` trains late (`slow-s` seconds), `"fault='garbage'"` reports nonsense."""
    fault, trains = context.node_config.get("fault"), message.metadata.message_type == MessageType.TRAIN
    if fault == "slow" and trains:
        time.sleep(float(context.node_config.get("slow-s", 60)))
    if fault == "garbage":
        name = reply.content.config_records[REPORT]["name"]
        nonsense = ConfigRecord({"name": name, "stored-labels": [-1.0], "f-hz": float("nan")})
        return Message(RecordDict({**reply.content, REPORT: nonsense}), reply_to=message)
    return reply
