"""Python as if it had been started anew, as far as users' files are concerned."""

from __future__ import annotations

import sys
from pathlib import Path

from feelstream import code


def restart(directory: Path) -> None:
    """Forget the files of a directory, and the modules that were made of them."""
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(directory):
            del sys.modules[name]
    for file in [file for file in code.held if file.is_relative_to(directory)]:
        del code.held[file]
