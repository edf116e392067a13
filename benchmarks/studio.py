"""The studio in a real Chromium: how long until the first picture, and how long a round takes to be seen.

The first race, two policies with 40 devices each, is opened in a new process and stepped through by its button; a step
ends when the page shows the next round. On an idle machine the bars are 3 s and 100 ms.

    python benchmarks/studio.py             # half a minute
    python benchmarks/studio.py --smoke     # a few steps

It needs the extra `studio`, Playwright and Chromium.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from playwright.sync_api import Page, sync_playwright

from machine import processor

FLAGS = ["--no-sandbox", "--disable-gpu"]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]+/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few steps")
    steps = 3 if parser.parse_args().smoke else 20
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        begin = perf_counter()
        command = [sys.executable, "-m", "feelstream", "studio", "--no-open"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
            try:
                assert server.stdout is not None
                found = ADDRESS.search(server.stdout.readline())
                assert found is not None
                started_s = perf_counter() - begin
                page = browser.new_page(viewport={"width": 1400, "height": 1000})
                page.goto(found.group())
                shown(page)
                picture_s = perf_counter() - begin - started_s
                page.get_by_role("button", name="Play or pause", exact=True).first.click()
                times_s = [step(page) for _ in range(steps)]
            finally:
                server.terminate()
        browser.close()
    print(f"{processor()}: server up after {started_s:.2f} s, first picture {picture_s:.2f} s later (bar: 3 s)")
    print(
        f"a step: median {1e3 * median(times_s):.0f} ms, slowest {1e3 * max(times_s):.0f} ms of {steps} (bar: 100 ms)"
    )


def shown(page: Page) -> int:
    """The round on the page, once there is one and a chart is drawn."""
    page.wait_for_function("() => /round \\d+ of/.test(document.querySelector('.round')?.textContent ?? '')")
    page.wait_for_selector(".chart canvas")
    found = re.search(r"round (\d+) of", page.locator(".round").inner_text())
    assert found is not None
    return int(found[1])


def step(page: Page) -> float:
    at = shown(page)
    begin = perf_counter()
    page.get_by_role("button", name="On one round", exact=True).first.click()
    page.wait_for_function(f"() => document.querySelector('.round').textContent.includes('round {at + 1} of')")
    return perf_counter() - begin


if __name__ == "__main__":
    main()
