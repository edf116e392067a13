"""Make the pages of results from their tables: python docs/make_results.py [--pictures] [--judge]

Each page has a template in studies/ and takes its numbers from the CSV files beside it. --pictures draws its figures
anew as well. --judge first makes reproduction.csv from the table with a row per run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from feelstream.report.figures import save
from feelstream.studies.pages import DOCS_DPI
from feelstream_studies import tables
from feelstream_studies.hu2023 import reproduction
from feelstream_studies.leaderboard import page as leaderboard
from feelstream_studies.silicon import page as silicon
from feelstream_studies.within_budget import page as within_budget

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
PAGES = {
    "reproduction": reproduction,
    "within-budget-results": within_budget,
    "leaderboard": leaderboard,
    "silicon": silicon,
}


def main() -> None:
    if "--judge" in sys.argv:
        about = tables.read(DOCS / "reproduction.csv").about
        tables.write(DOCS / "reproduction.csv", tables.Table(reproduction.judged(DOCS), about))
    for name, maker in PAGES.items():
        (DOCS / f"{name}.md").write_text(maker.from_tables(DOCS), encoding="utf-8")
        if "--pictures" in sys.argv:
            for picture, figure in maker.pictures(DOCS).items():
                save(figure, DOCS / "figures", picture, formats=("png",), dpi=DOCS_DPI)
    README.write_text(reproduction.readme(README.read_text(encoding="utf-8"), DOCS), encoding="utf-8")


if __name__ == "__main__":
    main()
