"""The studio in a real Chromium: how long until the first picture and until a step is drawn; what a long race leaves.

The first race, two policies with 40 devices each, is opened by a new process in a browser that is open already, and
stepped through by its button. The first picture and a step end in the page itself, two frames after the round on it
changed, when the charts that can be seen are drawn. On an idle machine the bars are 3 s from the command to the first
picture and 100 ms a step. CPU time of the server, which plays the next round meanwhile, and of all of Chromium's
processes is measured beside the clock, since it says something on a busy machine too; of several openings the quickest
is what the others did not disturb. Before all of them the program is opened once up to its first picture, so that all
of it is compiled, as an installed one is, and read from the disk.

    python benchmarks/studio.py             # a minute
    python benchmarks/studio.py --smoke     # a few steps
    python benchmarks/studio.py --long      # as many rounds as ten minutes at five a second have, as fast as they come

The long race learns a linear model on the synthetic data set, so that it is over in minutes; what server and page keep
of a round does not depend on the model. It needs the extra `studio`, Playwright, psutil and Chromium.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from time import sleep, time

import psutil
from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright  # pyright: ignore

from machine import processor

FLAGS = ["--no-sandbox", "--disable-gpu"]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]+/")
LONG = 3000  # ten minutes at the speed that a race begins with, 5 rounds a second
STILL_S = 300  # without a new round a race has broken off
SETTLED = 600  # rounds after which caches are warm: growth is measured from here
PATIENCE_MS = 300_000  # on a machine with other work
OPENINGS = 5
# When the first round of the race was drawn, since 1970.
PICTURE = """() => new Promise((done) => {
  const look = () => /round [1-9]\\d* of/.test(document.querySelector('.round')?.textContent ?? '')
    && document.querySelector('.chart:not(.unseen) canvas');
  const wait = () => look() ? requestAnimationFrame(() => done(performance.timeOrigin + performance.now()))
    : requestAnimationFrame(wait);
  wait();
})"""
STEP = """(at) => new Promise((done) => {
  const label = document.querySelector('.round'), begin = performance.now();
  const seen = new MutationObserver(() => {
    if (!label.textContent.includes(`round ${at + 1} of`)) return;
    seen.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
  });
  seen.observe(label, {childList: true, characterData: true, subtree: true});
  [...document.querySelectorAll('button')].find((each) => each.textContent.includes('Step')).click();
})"""


@dataclass
class Studio:
    """A page with the first race, and the processes behind it."""

    page: Page
    cdp: CDPSession
    server: psutil.Process
    started_s: float  # until the server answered
    picture_s: float  # until the first picture, from the same moment on: the command
    server_s: float  # CPU time until then, of the server
    browser_s: float  # and of Chromium


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
        with TemporaryDirectory() as folder:
            first_pictures(browser, folder, 1 if options.smoke or options.long else OPENINGS)
            with studio(browser, folder) as opened:
                if options.long:
                    race(opened, options.long)
                else:
                    steps(opened, 3 if options.smoke else 20)
        browser.close()


def first_pictures(browser: Browser, folder: str, openings: int) -> None:
    with studio(browser, folder):
        pass  # compiled and read
    print(f"{processor()}, load {psutil.getloadavg()[0]:.1f}; from the command to the first picture (bar: 3 s):")
    print("server up, s  first picture, s  CPU of the server, s  of Chromium, s")
    found = []
    for _ in range(openings):
        with studio(browser, folder) as opened:
            found.append((opened.started_s, opened.picture_s, opened.server_s, opened.browser_s))
            print(_row(found[-1]), flush=True)
    for name, of in (("least", min), ("median", median)):
        print(_row([of(each) for each in zip(*found, strict=True)]), name)


def _row(times_s: Sequence[float]) -> str:
    return f"{times_s[0]:12.2f}  {times_s[1]:16.2f}  {times_s[2]:20.2f}  {times_s[3]:14.2f}"


@contextmanager
def studio(browser: Browser, folder: str) -> Iterator[Studio]:
    """A new server and a tab with its first race; whatever the server complains about stops the measurement.

    What it compiles is kept in the folder.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "feelstream", "studio", "--no-open"]
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(PATIENCE_MS)
    begin, before = time(), chromium_s()
    with _started(command, folder, environment) as (server, address):
        started_s = time() - begin
        page.goto(address, wait_until="commit")
        picture_s = page.evaluate(PICTURE) / 1e3 - begin
        process = psutil.Process(server.pid)
        server_s, browser_s = cpu_s(process), since(before)
        cdp = page.context.new_cdp_session(page)
        yield Studio(page, cdp, process, started_s, picture_s, server_s, browser_s)
        page.close()


@contextmanager
def _started(command: list[str], folder: str, environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen, str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment) as server:
        try:
            assert server.stdout is not None
            found = ADDRESS.search(server.stdout.readline())
            assert found is not None
            yield server, found.group()
        finally:
            server.terminate()
            server.communicate()  # it says that it ends, to whoever still listens
    if server.returncode:
        raise SystemExit(f"the studio's server ended with {server.returncode}")


def steps(opened: Studio, count: int) -> None:
    page = opened.page
    page.get_by_role("button", name="Pause", exact=True).click()
    sleep(2)  # until the round that was under way is over
    before = cpu_s(opened.server), chromium_s()
    times_ms = []
    for _ in range(count):
        times_ms.append(page.evaluate(STEP, shown(page)))
        sleep(1)  # as someone would who looks at it
    server_s, browser_s = cpu_s(opened.server) - before[0], since(before[1])
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
        reach(opened, rounds, due)
        opened.cdp.send("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in opened.cdp.send("Performance.getMetrics")["metrics"]}
        found.append((shown(page), opened.server.memory_info().rss / 2**20, metrics["JSHeapUsedSize"] / 2**20))
        at, server, heap = found[-1]
        row = f"{at:5d}  {server:10.0f}  {heap:11.1f}  {metrics['Nodes']:5.0f}  {metrics['JSEventListeners']:9.0f}"
        print(row, flush=True)
    settled = next(each for each in found if each[0] >= min(SETTLED, rounds // 2))
    print(
        f"from round {settled[0]} to {found[-1][0]}: server {found[-1][1] - settled[1]:+.0f} MB, "
        f"JS heap {found[-1][2] - settled[2]:+.1f} MB"
    )


def reach(opened: Studio, rounds: int, due: int) -> None:
    """Wait until the page shows that round; if the race breaks off or stands still, end with what the page says."""
    at, since = 0, time()
    while at < due:
        sleep(1)
        words = opened.page.evaluate(f"[{ROUND}, document.querySelector('.notice.bad')?.textContent ?? '']")
        now = re.fullmatch(rf"round (\d+) of {rounds}", words[0])
        if words[1] or not opened.server.is_running():
            raise SystemExit(f"the race broke off at round {at}: {words[1] or 'the server has ended'}")
        if now is not None and int(now[1]) > at:
            at, since = int(now[1]), time()
        elif time() - since > STILL_S:
            raise SystemExit(f"the race stands still at round {at}; the page says {words[0]!r}")


ROUND = "document.querySelector('.round')?.textContent ?? ''"


def new_race(page: Page, rounds: int) -> None:
    """The same two policies and 40 devices, for so many rounds, as fast as they come."""
    page.get_by_label("Rounds per second").click()
    page.get_by_role("option", name="fastest").click()
    page.get_by_role("button", name="New race", exact=True).click()
    settings = f"rounds = {rounds}\ndataset = synthetic\nmodel = softmax"
    page.get_by_label("settings", exact=True).fill(settings)
    start = page.get_by_role("button", name="Start the race")
    expect(start).to_be_enabled(timeout=PATIENCE_MS)
    start.click()
    page.wait_for_function(f"() => {ROUND}.endsWith(' of {rounds}')")


def shown(page: Page) -> int:
    """The round on the page, once there is one and a chart is drawn."""
    page.wait_for_function(f"() => /round \\d+ of/.test({ROUND})")
    page.wait_for_selector(".chart:not(.unseen) canvas")
    found = re.search(r"round (\d+) of", page.locator(".round").inner_text())
    assert found is not None
    return int(found[1])


def cpu_s(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def chromium_s() -> dict[int, float]:
    """CPU time of each process of the browser so far."""
    children = psutil.Process().children(recursive=True)
    return {each.pid: cpu_s(each) for each in children if "chrom" in each.name()}


def since(before: dict[int, float]) -> float:
    """CPU time of the browser since then; of a closed tab's process nothing, once it has ended."""
    return sum(spent_s - before.get(process, 0.0) for process, spent_s in chromium_s().items())


if __name__ == "__main__":
    main()
