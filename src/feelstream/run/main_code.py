"""Names of code that lives in no file a run can name: a class or function of the script or notebook that runs."""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import Any

from feelstream.run.live_code import MAIN


def is_in_main(name: str) -> bool:
    """Whether a name in a scenario is that of something in the script or notebook that runs."""
    return name.startswith(f"{MAIN}:")


def found_in_main(name: str) -> Any:
    """What `__main__:Name` stands for; None where there is no such thing."""
    try:
        return attrgetter(name.partition(":")[2])(sys.modules[MAIN])
    except AttributeError:
        return None
