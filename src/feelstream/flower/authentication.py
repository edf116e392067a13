"""Whether the nodes of a federation authenticate, as far as a server can see it.

Flower does not say so to a ServerApp, but it says when each node was registered and when it was last activated. Without
authentication a SuperNode registers itself and is activated at once, under a key that it forgets when it ends. With it,
a key is registered by hand, some time before its SuperNode starts, and its node id stays the same ever after.
"""

from __future__ import annotations

import logging
from datetime import datetime

from flwr.serverapp import Grid

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
AHEAD_S = 1.0  # a SuperNode that registers itself is activated within milliseconds


def authenticated(grid: Grid) -> bool | None:
    """Whether every connected node was registered ahead of its start; None while there is none to judge by."""
    nodes = list(grid.get_nodes())
    if not nodes:
        return None
    ahead = all(_registered_ahead(node.registered_at, node.last_activated_at) for node in nodes)
    if ahead:
        log.info("the nodes authenticate, so that each name belongs to the node that uses it first (bind_names)")
    else:
        log.info(
            "the nodes seem not to authenticate: a name belongs to whichever node uses it (bind_names=True binds it)"
        )
    return ahead


def _registered_ahead(registered: str, activated: str) -> bool:
    try:
        return (datetime.fromisoformat(activated) - datetime.fromisoformat(registered)).total_seconds() > AHEAD_S
    except (ValueError, TypeError):  # a grid that does not say
        return False
