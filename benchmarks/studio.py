"""The studio in a real Chromium: how long until the first picture and until a step is drawn; what a long race leaves.

The first race, two policies with 40 devices each, is opened by a new process and stepped through by its button. A step
ends in the page itself, two frames after the round on it changed, when the charts that can be seen are drawn. On an
idle machine the bars are 3 s from the command to the first picture and 100 ms a step. CPU time of the server, which
plays the next round meanwhile, and of all of Chromium's processes is measured beside the clock, since it says something
on a busy machine too.

    python benchmarks/studio.py             # half a minute
    python benchmarks/studio.py --smoke     # a few steps
    python benchmarks/studio.py --long      # as many rounds as ten minutes at five a second have, as fast as they come

The long race learns a linear model on the synthetic data set, so that it is over in minutes; what server and page keep
of a round does not depend on the model. It needs the extra `studio`, Playwright, psutil and Chromium.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import psutil
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from machine import processor

FLAGS = ["--no-sandbox", "--disable-gpu"]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]+/")
LONG = 3000  # ten minutes at the speed that a race begins with, 5 rounds a second
SETTLED = 600  # rounds after which caches are warm: growth is measured from here
STEP = """(at) => new Promise((done) => {
  const label = document.querySelector('.round'), begin = performance.now();
  const seen = new MutationObserver(() => {
    if (!label.textContent.includes(`round ${at + 1} of`)) return;
    seen.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
  });
  seen.observe(label, {childList: true, characterData: true, subtree: true});
  document.querySelector('[aria-label="On one round"]').click();
})"""


@dataclass
class Studio:
    """A page with the first race, and the processes behind it."""

    page: Page
    cdp: CDPSession
    server: psutil.Process
    started_s: float  # until the server answered
    picture_s: float  # until the first picture, from the same moment on: the command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few steps")
    parser.add_argument(
        "--long", nargs="?", type=int, const=LONG, metavar="ROUNDS", help=f"a long race ({LONG} rounds)"
    )
    options = parser.parse_args()
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        with studio(browser) as opened:
            print(
                f"{processor()}, load {psutil.getloadavg()[0]:.1f}: server up after {opened.started_s:.2f} s "
                f"({cpu_s(opened.server):.2f} s of CPU), first picture after {opened.picture_s:.2f} s (bar: 3 s)"
            )
            if options.long:
                race(opened, options.long)
            else:
                steps(opened, 3 if options.smoke else 20)
        browser.close()


@contextmanager
def studio(browser: Browser) -> Iterator[Studio]:
    with TemporaryDirectory() as folder:
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
                process = psutil.Process(server.pid)
                cdp = page.context.new_cdp_session(page)
                yield Studio(page, cdp, process, started_s, perf_counter() - begin)
            finally:
                server.terminate()


def steps(opened: Studio, count: int) -> None:
    page = opened.page
    page.get_by_role("button", name="Play or pause", exact=True).first.click()
    sleep(2)  # until the round that was under way is over
    before = cpu_s(opened.server), chromium_s()
    times_ms = []
    for _ in range(count):
        times_ms.append(page.evaluate(STEP, shown(page)))
        sleep(1)  # as someone would who looks at it
    server_s, browser_s = cpu_s(opened.server) - before[0], chromium_s() - before[1]
    print(
        f"a step: median {median(times_ms):.0f} ms, slowest {max(times_ms):.0f} ms of {count} (bar: 100 ms); CPU "
        f"time a step: server {1e3 * server_s / count:.0f} ms, Chromium {1e3 * browser_s / count:.0f} ms"
    )


def race(opened: Studio, rounds: int) -> None:
    """A race as long as that, with the memory of server and page as it goes on."""
    page = opened.page
    new_race(page, rounds)
    opened.cdp.send("Performance.enable")
    print("round  server, MB  JS heap, MB  nodes  listeners")
    found: list[tuple[int, float, float]] = []
    step = max(rounds // 10, 1)
    while not found or found[-1][0] < rounds:
        due = min((found[-1][0] // step + 1) * step if found else step, rounds)
        page.wait_for_function(
            f"() => (/round (\\d+) of {rounds}$/.exec({ROUND}) ?? [])[1] >= {due}", timeout=0, polling=500
        )
        opened.cdp.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in opened.cdp.send("Performance.getMetrics")["metrics"]}
        found.append((shown(page), opened.server.memory_info().rss / 2**20, metrics["JSHeapUsedSize"] / 2**20))
        at, server, heap = found[-1]
        print(f"{at:5d}  {server:10.0f}  {heap:11.1f}  {metrics['Nodes']:5.0f}  {metrics['JSEventListeners']:9.0f}")
    settled = next(each for each in found if each[0] >= min(SETTLED, rounds // 2))
    print(
        f"from round {settled[0]} to {found[-1][0]}: server {found[-1][1] - settled[1]:+.0f} MB, "
        f"JS heap {found[-1][2] - settled[2]:+.1f} MB"
    )


ROUND = "document.querySelector('.round')?.textContent ?? ''"


def new_race(page: Page, rounds: int) -> None:
    """The same two policies and 40 devices, for so many rounds, as fast as they come."""
    page.get_by_label("Rounds per second").click()
    page.get_by_role("option", name="fastest").click()
    page.get_by_role("button", name="New race", exact=True).click()
    page.get_by_label("rounds", exact=True).last.fill(str(rounds))
    for section, label, value in (("[data]", "dataset", "synthetic"), ("[learning]", "model", "softmax")):
        page.get_by_text(section, exact=True).click()
        page.get_by_label(label, exact=True).last.fill(value)
    page.get_by_role("button", name="Start the race").click()


def shown(page: Page) -> int:
    """The round on the page, once there is one and a chart is drawn."""
    page.wait_for_function(f"() => /round \\d+ of/.test({ROUND})")
    page.wait_for_selector(".chart canvas")
    found = re.search(r"round (\d+) of", page.locator(".round").inner_text())
    assert found is not None
    return int(found[1])


def cpu_s(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def chromium_s() -> float:
    """CPU time of all processes of the browser so far."""
    children = psutil.Process().children(recursive=True)
    return sum(cpu_s(each) for each in children if "chrom" in each.name())


if __name__ == "__main__":
    main()
