"""The report in a real Chromium: nothing fetched, no errors, every chart drawn, hover, toggles, narrow and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import chromium
import pytest

from feelstream import report

pytestmark = [pytest.mark.nightly, chromium.needs_chromium]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 375, "height": 800}


class Opened(chromium.Watched):
    def go(self, file: Path) -> None:
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-drawn=yes]")

    def sizes(self) -> dict[str, tuple[float, float]]:
        """Width and height of each chart's drawing, by the chart's id."""
        return self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll('.plot:not([hidden] *)')].map((plot) => {
                const box = plot.querySelector('svg.main-svg')?.getBoundingClientRect();
                return [plot.id, box ? [box.width, box.height] : [0, 0]];
            }))"""
        )


@pytest.fixture(scope="module")
def browser_of(tmp_path_factory):
    """Opens a fresh Chromium profile with a screen size and a colour scheme."""
    with chromium.api.sync_playwright() as playwright:
        contexts = []

        def start(size: dict[str, int], scheme: str, free: bool = True) -> Opened:
            """free: from the page's policy, which would not let the test's own conditions be evaluated."""
            context = playwright.chromium.launch_persistent_context(
                tmp_path_factory.mktemp("profile"),
                headless=True,
                **chromium.START,
                viewport=size,
                color_scheme=scheme,
                bypass_csp=free,
            )
            contexts.append(context)
            return Opened(context.pages[0])

        yield start
        for context in contexts:
            context.close()


@pytest.fixture(scope="module")
def file(learned_results, tmp_path_factory) -> Path:
    return report.write(learned_results, tmp_path_factory.mktemp("browser")).report


@pytest.fixture(scope="module")
def opened(browser_of, file) -> Iterator[Opened]:
    page = browser_of(WIDE, "light")
    page.go(file)
    yield page
    assert page.problems == []
    assert page.requests == [file.as_uri()]  # whatever the tests clicked, nothing was fetched


def test_the_page_runs_its_own_script_and_no_other(browser_of, file, tmp_path):
    """As if some name had got into the page unescaped: nothing of it runs, nothing is fetched, all is drawn."""
    smuggled = "<script>document.title = 'evil'</script><img src=x onerror=\"document.title='evil'\">"
    forged = tmp_path / "forged.html"
    forged.write_text(file.read_text(encoding="utf-8").replace("<nav>", smuggled + "<nav>", 1), encoding="utf-8")
    for each in (file, forged):
        page = browser_of(WIDE, "light", free=False)
        page.go(each)
        assert page.sizes()["chart-0"][0] > 300
        assert page.page.title().startswith("feelstream")
        assert [url for url in page.requests if not url.startswith("file:")] == []
        assert (page.problems == []) == (each is file), page.problems


def test_every_chart_is_drawn(opened):
    sizes = opened.sizes()
    assert set(sizes) == {*(f"chart-{number}" for number in range(6)), "map-schedule", "map-waiting", "map-energy"}
    assert all(width > 300 and height > 200 for width, height in sizes.values()), sizes


def test_hover_names_the_arms_with_value_and_interval(opened):
    plot = opened.page.locator("#chart-0 .nsewdrag").first
    plot.scroll_into_view_if_needed()
    plot.hover()
    label = opened.page.locator("#chart-0 .hoverlayer")
    label.locator("text").first.wait_for()
    words = label.text_content()
    assert "lyapunov" in words
    assert "onerror=alert(1)" in words  # shown as text
    assert "[" in words


def test_the_tool_bar_is_no_box_and_lies_above_the_data(opened):
    opened.page.locator("#chart-0 .nsewdrag").first.hover()
    bar, plot = (opened.page.locator(f"#chart-0 {part}").first for part in (".modebar", ".nsewdrag"))
    colour = opened.page.locator("#chart-0 .modebar-group").first.evaluate("e => getComputedStyle(e).backgroundColor")
    assert colour == "rgba(0, 0, 0, 0)"
    assert bar.bounding_box()["y"] + bar.bounding_box()["height"] <= plot.bounding_box()["y"]


def test_a_click_in_the_legend_hides_an_arm(opened):
    def visible(arm: int) -> list:
        return opened.page.evaluate(
            "arm => document.getElementById('chart-0').data.filter(t => t.legendgroup === `arm${arm}`)"
            ".filter(t => t.meta.role !== 'seeds').map(t => t.visible ?? true)",
            arm,
        )

    assert visible(1) == [True]  # three seeds: no band
    opened.page.locator("#chart-0 .legendtoggle").nth(1).click()
    opened.page.wait_for_function("document.getElementById('chart-0').data.some(t => t.visible === 'legendonly')")
    assert visible(1) == ["legendonly"]
    assert visible(0) == [True]
    # Seeds of a hidden arm stay hidden when seeds are asked for.
    opened.page.check("#show-seeds")
    shown = "document.getElementById('chart-0').data.filter(t => t.meta.role === 'seeds').map(t => t.visible)"
    assert opened.page.evaluate(shown) == [True, "legendonly"]
    opened.page.uncheck("#show-seeds")
    assert opened.page.evaluate(shown) == [False, False]


def test_the_device_map_can_be_ordered_by_arrival_and_switched_to_another_run(opened):
    def rows(chart: str = "map-schedule") -> list[str]:
        return opened.page.evaluate("id => document.getElementById(id).data[0].y", chart)

    def cells() -> list[list[int]]:
        return opened.page.evaluate("document.getElementById('map-schedule').data[0].z")

    by_beta, before = rows(), cells()
    opened.page.select_option("#map-order", "arrival")
    assert rows() != by_beta
    assert sorted(rows()) == sorted(by_beta)
    assert sorted(map(tuple, cells())) == sorted(map(tuple, before))  # the same rows in another order
    opened.page.select_option("#map-arm", "1")
    opened.page.select_option("#map-seed", "2")
    assert cells() != before
    assert rows("map-waiting") == rows()


def test_the_charts_follow_the_colour_scheme(opened):
    def colours() -> list[str]:
        return opened.page.evaluate(
            "() => { const p = document.getElementById('chart-0'); "
            "return [getComputedStyle(document.body).backgroundColor, p._fullLayout.font.color, "
            "p.data.find(t => t.meta.role === 'mean').line.color]; }"
        )

    def switch(scheme: str) -> None:
        """The browser tells the page of the new scheme in its own time; wait until the last chart has taken it up."""
        opened.page.emulate_media(color_scheme=scheme)
        opened.page.wait_for_function(
            "document.getElementById('map-energy')._fullLayout.font.color === "
            "getComputedStyle(document.documentElement).getPropertyValue('--text').trim()"
        )

    light = colours()
    switch("dark")
    dark = colours()
    assert all(one != other for one, other in zip(light, dark, strict=True))
    switch("light")
    assert colours() == light


@pytest.mark.parametrize(("size", "scheme"), [(NARROW, "light"), (NARROW, "dark"), (WIDE, "dark")])
def test_narrow_and_dark_pages_fit_and_draw(browser_of, file, tmp_path, size, scheme):
    page = browser_of(size, scheme)
    page.go(file)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert all(0 < width <= size["width"] and height > 200 for width, height in page.sizes().values())
    screenshot = page.page.screenshot(path=tmp_path / f"report-{size['width']}-{scheme}.png", full_page=True)
    assert len(screenshot) > 20_000
    assert page.problems == []


def test_it_prints(opened, tmp_path):
    printed = opened.page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert printed.startswith(b"%PDF")


def test_a_slider_tells_what_happened_in_a_round_and_arms_stand_side_by_side(opened):
    assert opened.page.locator("#map-second").is_hidden()
    opened.page.select_option("#map-beside", "1")
    opened.page.wait_for_selector("#map-schedule-2 .heatmaplayer image")
    opened.page.locator("#map-round").evaluate("s => { s.value = 3; s.dispatchEvent(new Event('input')); }")
    assert opened.page.locator("#map-at").inner_text().startswith("3: ")
    lines = "['map-schedule', 'map-schedule-2'].map(id => document.getElementById(id).layout.shapes[0].x0)"
    assert opened.page.evaluate(lines) == [3, 3]
    assert opened.problems == []


def test_no_button_uploads_a_chart(opened):
    titles = "[...document.querySelectorAll('.modebar-btn')].map(b => b.getAttribute('data-title') || '')"
    found = opened.page.evaluate(titles)
    assert found
    assert not [title for title in found if "Share" in title or "Cloud" in title]
