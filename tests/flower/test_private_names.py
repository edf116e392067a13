"""What of Flower is not its public interface is used in two places, and is there."""

from __future__ import annotations

import ast
from pathlib import Path

from flwr.common.constant import ErrorCode
from flwr.supercore.differential_privacy import KEY_CLIPPING_NORM

import feelstream.flower
from feelstream.flower.wire import CLIPPING, NO_REPLY

PUBLIC = ("flwr", "flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy")
ROOM = Path(feelstream.flower.__file__).parent
EXEMPT = {"local_grid.py", "hosting.py"}  # the second replaces parts of Flower's processes


def modules(file: Path) -> set[str]:
    """Of Flower, as far as this file imports them."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name for name in plain | named if name.partition(".")[0] == "flwr"}


def test_only_public_modules_of_flower_are_imported() -> None:
    found = {file.name: modules(file) - set(PUBLIC) for file in ROOM.glob("*.py")}
    assert {name for name, private in found.items() if private} <= EXEMPT
    assert found["local_grid.py"]


def test_what_travels_by_another_name_is_what_flower_means() -> None:
    assert NO_REPLY == (
        ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE
    )  # fmt: skip
    assert CLIPPING == KEY_CLIPPING_NORM
