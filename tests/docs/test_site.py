"""The site builds without a warning, fetches nothing, and can be read and searched from the disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT

for needed in ("mkdocs", "material", "mkdocstrings", "latex2mathml", "nbclient", "jupytext", "flwr"):
    pytest.importorskip(needed)
pytestmark = pytest.mark.nightly  # the whole site is built


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in strict mode; the tutorials are not run here, test_tutorials.py does that."""
    out = tmp_path_factory.mktemp("site")
    source = Path(sys.modules["feelstream"].__file__ or "").parents[1]
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "FEELSTREAM_DOCS_UNRUN": "1", "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return out


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="?(https?:)?//[^">]*')
    assert [
        (page.name, found[0]) for page in site.rglob("*.html") for found in fetched.finditer(page.read_text())
    ] == []


def test_formulas_are_typeset(site: Path) -> None:
    page = (site / "derivation.html").read_text()
    assert page.count('<div class="formula"><math') >= 10  # the page has more displayed formulas than that
    assert "$$" not in page
    assert "arithmatex" not in page


def test_generated_pages_hold_the_program(site: Path) -> None:
    assert 'id="lyapunov_joint"' in (site / "reference" / "policies.html").read_text()
    assert "feelstream check" in (site / "reference" / "command-line.html").read_text()
    assert "simulate" in (site / "reference" / "api.html").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no Chromium")
    with sync.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_window(site: Path, browser: Any, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme, offline=True)
    page, problems = context.new_page(), []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
    for name in ("index", "getting-started", "tutorials/first_run", "derivation", "model", "reference/api"):
        page.goto(f"file://{site}/{name}.html")
        too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert too_wide <= 0, f"{name} is {too_wide} pixels too wide"
    assert problems == []
    context.close()


def test_the_search_works_from_the_disk(site: Path, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page, found, late = context.new_page(), 0, pytest.importorskip("playwright.sync_api").TimeoutError
    for patience_s in (0, 2, 10, 30, 60):  # what is typed before the page's own script listens is lost
        page.goto(f"file://{site}/index.html")
        page.wait_for_timeout(1000 * patience_s)
        page.fill("[data-md-component=search-query]", "dissimilarity")
        with suppress(late):
            page.wait_for_selector(".md-search-result__item", timeout=20_000)
        if found := page.locator(".md-search-result__item").count():
            break
    assert found
    context.close()
