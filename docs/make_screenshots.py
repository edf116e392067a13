"""Take pictures of what users see, to look at before a release: the site's home, a report, the README's figures.

    make docs && python docs/make_screenshots.py build/screenshots

Every page at 1400 and 390 pixels, on light and on dark. It needs Chromium, and writes nothing but the pictures.
"""

from __future__ import annotations

import shutil
import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

import feelstream as fs

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
OF_SITE = ("index.html", "getting-started.html", "reproduction.html", "leaderboard.html", "silicon.html", "studio.html")
WIDTHS = {"wide": (1400, 1000), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
POLICIES = ["lyapunov", "random", "balanced"]


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    with TemporaryDirectory() as place, sync_playwright() as playwright:
        found = fs.compare(POLICIES, "tiny", seeds=5, rounds=20, out=Path(place) / "found")
        found.plot("accuracy").savefig(out / "plot.png", dpi=120)
        pages = {"report": found.report()}
        pages |= {Path(name).stem: SITE / name for name in OF_SITE if (SITE / name).exists()}
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for (name, page), (size, scheme) in product(pages.items(), product(WIDTHS, SCHEMES)):
            shoot(browser, page, out / f"{name}-{size}-{scheme}.png", size, scheme)
        browser.close()


def shoot(browser: Browser, page: Path, to: Path, size: str, scheme: str) -> None:
    width, height = WIDTHS[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_load_state("networkidle")
    if page.name == "report.html":  # which draws its charts after it is loaded
        tab.wait_for_selector("html[data-drawn=yes]")
    tab.screenshot(path=to, full_page=True)
    context.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/make_screenshots.py DIRECTORY")
    main(Path(sys.argv[1]))
