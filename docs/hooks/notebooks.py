"""Tutorials are scripts in Jupytext's percent format. They are run when the site is built; pages show the output.

docs/tutorials/NAME.py becomes the page tutorials/NAME.md, its pictures, and tutorials/NAME.ipynb to download. A
cell that fails stops the build.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
import nbformat
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

import feelstream

TUTORIALS = Path(__file__).parents[1] / "tutorials"
DOWNLOAD = "\n\n[This page as a notebook]({name}.ipynb)\n"


def on_files(files: Files, *, config: Any) -> Files:
    for script in sorted(TUTORIALS.glob("*.py")):
        notebook = executed(script.read_text(encoding="utf-8"))
        pictures: dict[str, bytes] = {}
        page = "\n\n".join(cells(notebook, script.stem, pictures))
        title, line, rest = page.partition("\n")
        page = title + DOWNLOAD.format(name=script.stem) + line + rest
        for name, content in {f"{script.stem}.md": page, f"{script.stem}.ipynb": nbformat.writes(notebook)}.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
        for name, image in pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=image))
    return files


@cache  # `mkdocs serve` builds again at every change of any page
def executed(script: str) -> Any:
    notebook = jupytext.reads(script, fmt="py:percent")
    if os.environ.get("FEELSTREAM_DOCS_UNRUN"):  # for tests of the pages' form; others run the tutorials
        return notebook
    package = str(Path(feelstream.__file__).parents[1])  # the one whose reference the site shows
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    with TemporaryDirectory() as directory:
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{directory}/kernel"}})  # files, not ports
        client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": directory}}, config=config)
        try:
            return client.execute(env={**os.environ, "PYTHONPATH": path})
        except CellExecutionError as problem:
            raise PluginError(f"a tutorial failed:\n{plain(str(problem))}") from problem


def cells(notebook: Any, name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """The page in Markdown, piece by piece; pictures are added to `pictures`."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
            continue
        yield f"```python\n{cell.source}\n```"
        for output in joined(cell.outputs):
            data = output.get("data", {})
            if output.output_type == "stream":
                yield f"```text\n{plain(output.text)}\n```" if output.text.strip() else ""
            elif "text/html" in data:
                yield f'<div class="output">\n{one_line(data["text/html"])}\n</div>'
            elif "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                yield f"![What the lines above draw]({file})"
            else:
                yield f"```text\n{plain(data['text/plain'])}\n```"


def joined(outputs: list[Any]) -> Iterator[Any]:
    """The outputs of a cell; what was printed in several goes, as a slow machine does, is one of them."""
    for kind, group in groupby(outputs, key=lambda output: (output.output_type, output.get("name"))):
        if kind[0] == "stream":
            first, *others = group
            first.text += "".join(output.text for output in others)
            yield first
        else:
            yield from group


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip()


def one_line(html: str) -> str:
    """Without blank lines, at which Markdown would take over, and without the style that polars adds to every table."""
    return re.sub(r"\s*\n\s*", " ", re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)).strip()
