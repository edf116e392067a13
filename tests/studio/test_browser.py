"""The studio in a real Chromium: first race, forms, pause, step, fork, save, phone, dark, offline, token."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import chromium
import pytest
from builders import small
from patience import PATIENCE_S

import feelstream
from feelstream.run import Change, simulate, simulate_in
from feelstream.scenario.files import load, preset
from feelstream.studio.saving import write_race
from feelstream.verification import verify

pytest.importorskip("nicegui", reason="the extra studio is not installed")
pytestmark = pytest.mark.nightly
PACKAGE = Path(feelstream.__file__).parents[1]  # the very package under test, wherever the studio is started


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the studio runs; its cache is empty, so that the first race is on synthetic data."""
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    # Under pytest's own variable NiceGUI would wait for a test harness of its kind.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    command = [sys.executable, "-c", "from feelstream.cli import main; main()", "studio", "--no-open"]
    complaints = folder / "complaints.txt"
    with complaints.open("w") as said, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=said, text=True, cwd=folder,
        env={**environment, "FEELSTREAM_CACHE": str(folder / "cache"), "PYTHONPATH": str(PACKAGE)},
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", server.stdout.readline())
            assert found is not None
            yield found.group()
        finally:
            server.terminate()
    assert complaints.read_text() == ""  # whatever the tests did, tabs that were closed among it


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator:
    with chromium.api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(**chromium.START)
        yield launched
        launched.close()


class Tab(chromium.Watched):
    def open(self, address: str) -> None:
        self.page.goto(address)
        self.shows(r"round \d+ of \d+")

    def shows(self, words: str) -> None:
        chromium.api.expect(self.page.locator(".round")).to_have_text(re.compile(words), timeout=chromium.PATIENCE_MS)

    def sees(self, text: str) -> None:
        chromium.api.expect(self.page.get_by_text(text).first).to_be_visible(timeout=chromium.PATIENCE_MS)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def new_race(self, seed: int, settings: str = "") -> None:
        """Start a race on the preset `tiny`."""
        self.press("New race")
        self.page.get_by_label("preset", exact=True).click()
        self.page.get_by_role("option", name="tiny").click()
        self.page.get_by_label("seed", exact=True).fill(str(seed))
        self.page.get_by_label("settings", exact=True).fill(settings)
        self.press("Start the race")
        self.sees(f"tiny, seed {seed}")


@pytest.fixture(scope="module")
def tab(browser, address: str) -> Iterator[Tab]:
    """The tab of the whole module, in the light and wide."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="light", accept_downloads=True)
    opened = Tab(context.new_page())
    opened.open(address)
    yield opened
    assert opened.problems == []
    assert all(url.startswith(("http://127.0.0.1:", "data:")) for url in opened.requests)
    context.close()


def drawn(tab: Tab) -> list[bool]:
    """Whether each chart's canvas holds anything but blank pixels; a chart is drawn when it is scrolled to."""
    return tab.page.evaluate(
        """async () => {
            const charts = [...document.querySelectorAll('.chart')].filter((each) => each.offsetParent);
            const found = [];
            for (const chart of charts) {
                chart.scrollIntoView({block: 'center'});
                for (let wait = 0; wait < 200 && !chart.querySelector('canvas'); wait++) {
                    await new Promise((done) => setTimeout(done, 50));
                }
                const canvas = chart.querySelector('canvas');
                const pixels = canvas?.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data ?? [];
                found.push(pixels.some((value, at) => at % 4 === 3 && value > 0));
            }
            scrollTo(0, 0);
            return found;
        }"""
    )


@chromium.needs_chromium
def test_the_first_race_moves_by_itself(tab: Tab) -> None:
    tab.sees("MNIST is not on this machine yet")
    tab.sees("were scheduled out of")
    tab.sees("The rule: ")
    tab.shows(r"round [2-9]\d* of 40|round 1\d of 40")
    charts = drawn(tab)
    # Three curves, map and timeline of two lanes, the scores of one, labels and history of a device, data by label.
    assert len(charts) == 13
    assert all(charts)


@chromium.needs_chromium
def test_a_wrong_value_gets_the_sentence_of_the_command_line(tab: Tab) -> None:
    tab.press("New race")
    start = tab.page.get_by_role("button", name="Start the race")
    chromium.api.expect(start).to_be_enabled(timeout=chromium.PATIENCE_MS)
    tab.page.get_by_label("policies", exact=True).fill("lyapunov(V=-1), random")
    tab.sees("policy.V: must be greater than 0, not -1")
    chromium.api.expect(start).to_be_disabled(timeout=chromium.PATIENCE_MS)
    tab.page.get_by_label("policies", exact=True).fill("lyapunov, random")
    chromium.api.expect(start).to_be_enabled(timeout=chromium.PATIENCE_MS)
    tab.press("Cancel")


@chromium.needs_chromium
def test_keys_pause_step_and_jump(tab: Tab) -> None:
    tab.new_race(4)
    tab.shows("round 10 of 10")
    tab.page.locator("body").click(position={"x": 5, "y": 400})
    tab.page.keyboard.press("Home")
    tab.shows("round 1 of 10")
    tab.page.keyboard.press("ArrowRight")
    tab.shows("round 2 of 10")
    tab.page.keyboard.press("ArrowLeft")
    tab.shows("round 1 of 10")
    tab.page.get_by_label("value", exact=True).press("ArrowRight")  # moves nothing but the cursor
    tab.shows("round 1 of 10")
    tab.page.locator("body").click(position={"x": 5, "y": 400})
    tab.press("Step")
    tab.shows("round 2 of 10")
    tab.page.keyboard.press("Space")  # plays, although the button was clicked before
    tab.shows("round 10 of 10")
    tab.page.keyboard.press("Home")
    tab.page.keyboard.press("End")
    tab.shows("round 10 of 10")
    assert tab.page.evaluate("scrollY") == 0
    tab.page.get_by_label("Number of the device").fill("99")
    tab.sees("There is no device 99; they are 0 to 9.")


@chromium.needs_chromium
def test_a_talk_is_large_and_ends_with_the_same_key(tab: Tab) -> None:
    tab.page.locator("body").click(position={"x": 5, "y": 400})
    tab.page.keyboard.press("f")
    tab.page.wait_for_function("document.body.classList.contains('talk')")
    chromium.api.expect(tab.page.get_by_text("What if …")).to_be_hidden(timeout=chromium.PATIENCE_MS)
    tab.page.keyboard.press("f")
    chromium.api.expect(tab.page.get_by_text("What if …")).to_be_visible(timeout=chromium.PATIENCE_MS)


@chromium.needs_chromium
def test_an_exported_race_plays_without_a_network(browser, tmp_path: Path) -> None:
    runs = [simulate(small(f"policy.name={name}"), 3).save(tmp_path / name) for name in ("lyapunov", "random")]
    file = write_race(runs, tmp_path / "race.html")
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark", offline=True)
    alone = Tab(context.new_page())
    alone.page.goto(f"{file.as_uri()}#2")
    shown = chromium.api.expect(alone.page.locator("#round"))
    shown.to_have_text("round 2 of 8")
    alone.page.keyboard.press("ArrowRight")
    shown.to_have_text("round 3 of 8")
    alone.page.keyboard.press("End")
    shown.to_have_text("round 8 of 8")
    alone.sees("were scheduled out of")
    assert alone.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert alone.problems == []
    assert [url.partition("#")[0] for url in alone.requests] == [file.as_uri()]
    context.close()


@chromium.needs_chromium
def test_a_change_while_it_runs_a_fork_and_what_is_saved(tab: Tab, folder: Path) -> None:
    tab.new_race(6, "rounds = 12")
    tab.page.locator("body").click(position={"x": 5, "y": 400})
    tab.page.keyboard.press("Home")
    tab.shows("round 1 of 12")
    tab.press("Fork after round 1")
    tab.sees("lyapunov has V = 0.05 in round 2 already; give another value to fork")
    tab.page.get_by_label("value", exact=True).fill("nonsense")
    tab.press("Fork after round 1")
    tab.sees("policy.V: must be a number or 'auto', not 'nonsense'")
    tab.page.get_by_label("value", exact=True).fill("2")
    tab.press("Fork after round 1")
    tab.sees("lyapunov, V = 2 from 2")
    tab.press("Save")
    tab.page.get_by_label("directory", exact=True).fill("saved")
    tab.press("Save run directories")
    tab.sees("Saved in ")
    with tab.page.expect_download() as download:
        tab.press("tiny-seed-6.html")
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    saved = folder / "saved"
    forked = saved / "lyapunov-V-2-from-2"
    assert "--change 2:policy.V=2" in (saved / "commands.txt").read_text()
    scenario = load(saved / "lyapunov-V-2-from-2.toml")
    assert scenario == preset("tiny", ["policy.name=lyapunov", "system.rounds=12"])
    simulate_in(folder / "alone", scenario, 6, changes=[Change(2, "policy.V", "2")])
    for name in ("rounds.parquet", "devices.parquet"):
        assert (forked / name).read_bytes() == (folder / "alone" / name).read_bytes()
    assert all(verify(saved / name).ok for name in ("lyapunov", "random", "lyapunov-V-2-from-2"))
    tab.page.keyboard.press("Escape")
    tab.press("Open")
    tab.page.get_by_label("directory of a run").fill("saved")
    tab.press("Replay")
    tab.shows("round 12 of 12")
    chromium.api.expect(tab.page.get_by_text("What if …")).to_be_hidden(timeout=chromium.PATIENCE_MS)


@chromium.needs_chromium
@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_any_chart_can_be_saved_as_a_picture(tab: Tab, kind: str) -> None:
    with tab.page.expect_download() as download:
        tab.press(f"Save Energy per device as {kind}")
    picture = Path(download.value.path()).read_bytes()
    assert picture.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
    assert len(picture) > 2000
    if kind == "SVG":
        for words in ("Energy per device, saved", "mJ per round", "round", "lyapunov", "random", "budget"):
            assert words in picture.decode()  # title, axes and legend


@chromium.needs_chromium
def test_a_lost_connection_comes_back_to_the_same_race(tab: Tab) -> None:
    tab.new_race(9)
    tab.page.evaluate("window.socket.io.engine.close()")  # as if the network had gone; the page connects again
    tab.shows("round 10 of 10")
    tab.sees("tiny, seed 9")


@chromium.needs_chromium
def test_a_phone_in_the_dark_fits(browser, address: str, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 375, "height": 800}, color_scheme="dark")
    phone = Tab(context.new_page())
    phone.open(address)
    phone.sees("were scheduled out of")
    phone.page.wait_for_function("document.body.classList.contains('body--dark')")
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 375
    assert len(phone.page.screenshot(path=tmp_path / "phone.png", full_page=True)) > 20_000
    assert phone.problems == []
    context.close()


def test_a_wrong_token_gets_a_page_that_asks_for_it(address: str) -> None:
    bare = address.rstrip("/").rpartition("/")[0] + "/"
    for wrong in (bare, bare + "guess/", bare + "_nicegui_ws/socket.io/?EIO=4&transport=polling", address[:-1] + "x/"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(wrong)
        assert refused.value.code == 403
        assert "This address lacks the token" in refused.value.read().decode()
        refused.value.close()


def test_twenty_sessions_at_once_are_answered(address: str) -> None:
    def page(_: int) -> str:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            return answer.read().decode()

    with ThreadPoolExecutor(20) as pool:
        pages = list(pool.map(page, range(20)))
    assert len(pages) == 20
    assert len({re.search(r"leave/([\w-]+)", text).group(1) for text in pages}) == 20  # type: ignore[union-attr]
