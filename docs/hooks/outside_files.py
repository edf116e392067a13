"""Pages may link to files of the repository beside docs/, such as examples: those files become part of the site."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)\)")


def on_files(files: Files, *, config: Any) -> Files:
    for page in list(files.documentation_pages()):
        for link in LINK.findall(page.content_string):
            inside = within(page.src_uri, link)
            if inside and files.get_file_from_path(inside) is None:
                source = ROOT / inside.removeprefix("repository/")
                files.append(File.generated(config, inside, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    def moved(found: re.Match[str]) -> str:
        inside = within(page.file.src_uri, found[1])
        return f"]({relpath(inside, PurePosixPath(page.file.src_uri).parent)})" if inside else found[0]

    return LINK.sub(moved, markdown)


def within(page: str, link: str) -> str | None:
    """Where the site keeps the file that a page links to, if it lies outside docs/."""
    target = normpath(PurePosixPath("docs", page).parent / link)
    outside = not target.startswith(("docs/", "../")) and (ROOT / target).is_file()
    return f"repository/{target}" if outside else None
