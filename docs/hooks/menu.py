"""A page that the menu in mkdocs.yml does not name is shown under "More", so that none can be lost.

Pages of the archive are listed by its index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.structure.files import Files


def on_files(files: Files, *, config: Any) -> Files:
    listed = set(targets(config.nav))
    others = sorted(page.src_uri for page in files.documentation_pages() if page.src_uri not in listed)
    if more := [page for page in others if not page.startswith("archive/")]:
        config.nav.append({"More": more})
    return files


def targets(menu: Any) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    else:
        for entry in menu.values() if isinstance(menu, dict) else menu:
            yield from targets(entry)
