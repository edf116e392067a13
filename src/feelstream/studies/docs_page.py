"""How studies write a page of the docs: text, a table of its numbers, a figure, and where all of it comes from."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from feelstream.errors import RunError
from feelstream.experiment import Results
from feelstream.report.drawing.figures import save
from feelstream.report.origin import origin
from feelstream.run.files import write_atomically

DOCS_DPI = 120  # a picture that is kept in the repository stays small


def write_page(directory: Path, page: str, text: str, name: str, table: pl.DataFrame, figure: Figure) -> Path:
    """Write page.md, name.csv and figures/name.png; the page's path."""
    pictures = directory / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"cannot use the directory {pictures}: {problem.strerror}") from problem
    save(figure, pictures, name, formats=("png",), dpi=DOCS_DPI)
    write_atomically(directory / f"{name}.csv", lambda file: table.write_csv(file))
    path = directory / f"{page}.md"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def origin_parts(results: Results) -> list[str]:
    """The paragraphs on when, by which command and on what the runs were made."""
    made = origin(results)
    return [
        "## Origin\n",
        f"Runs of {made.finished.partition(' ')[0]}, seeds {made.facts['Seeds']}. This page is written by a command; "
        f"do not edit it:\n\n    {made.command} --docs docs\n",
        "; ".join(f"{name}: {fact}" for name, fact in made.facts.items()) + "\n",
    ]
