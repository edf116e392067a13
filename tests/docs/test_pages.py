"""The pages say what the program does: generated ones are its own, links lead somewhere, and so does the menu."""

from __future__ import annotations

import importlib.util
import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from pages import DOCS, PAGES, ROOT, TUTORIALS

import feelstream as fs
from feelstream.testing import KINDS

MADE_BY_THE_SITE = {f"tutorials/{script.stem}.md" for script in TUTORIALS} | {
    "reference/policies.md",
    "reference/contracts.md",
    "reference/command-line.md",
}


def maker_of(name: str) -> Any:
    """The script that makes a page."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    return maker


@pytest.mark.parametrize(("name", "maker"), [("cores", "make_cores"), ("scenario", "make_scenario")])
def test_a_page_of_the_reference_is_that_of_its_maker(name: str, maker: str) -> None:
    stale = f"docs/reference/{name}.md is stale; run python docs/{maker}.py"
    assert (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8") == maker_of(maker).page(), stale


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not _exists(page.parent / target)]
    assert missing == []


def _anchors(page: Path) -> set[str]:
    """Of its headings, as Markdown makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {"-".join(re.sub(r"\]\([^)]*\)|[^\w\s-]", "", title.lower()).split()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_into_a_page_lead_to_a_heading(page: Path) -> None:
    links = re.findall(r"\]\((?!\w+://)([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    places = [(page.parent / target if target else page, anchor) for target, anchor in links]
    assert [(file, anchor) for file, anchor in places if file.is_file() and anchor not in _anchors(file)] == []


def _exists(target: Path) -> bool:
    made = target.resolve().is_relative_to(DOCS) and str(target.resolve().relative_to(DOCS)) in MADE_BY_THE_SITE
    return made or target.is_dir() or (target.is_file() and target.stat().st_size > 0)  # an empty picture shows nothing


REFERRED_TO = re.findall(r"^::: (\S+)", (DOCS / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_public_name_is_on_the_page_of_the_python_reference() -> None:
    shown = [resolve_name(name) for name in REFERRED_TO]
    shown += [value for module in shown if inspect.ismodule(module) for value in vars(module).values()]
    missing = [name for name in fs.__all__ if name != "__version__" and getattr(fs, name) not in shown]
    assert missing == []


def test_what_plug_ins_of_each_kind_derive_from_is_there_too() -> None:
    shown = [resolve_name(name) for name in REFERRED_TO]
    bases = {name: kind.base for name, kind in KINDS.items() if kind.has_settings}
    assert [name for name, base in bases.items() if base not in shown] == []


@pytest.mark.parametrize("name", REFERRED_TO)
def test_every_field_of_a_class_of_the_python_reference_is_explained(name: str) -> None:
    found = resolve_name(name)
    if not is_dataclass(found):
        return  # settings have a page of their own; functions say what they take
    own = [field.name for field in fields(found) if field.name in vars(found).get("__annotations__", {})]
    said = inspect.getdoc(found) or ""
    assert [name for name in own if not re.search(rf"^ *(\w+, )*{name}(, \w+)*:|`{name}`", said, re.MULTILINE)] == []


# The pages that describe what there is of each kind of plug-in, as CONTRIBUTING.md names them.
DESCRIBED = {
    "policy": ("policies.md",),
    "metric": ("model.md",),
    "evaluator": ("evaluators.md",),
    "partition": ("reference/scenario.md",),
    "arrivals": ("reference/scenario.md",),
    "buffer": ("reference/scenario.md",),
    "features": ("features.md",),
    "energy law": ("energy-laws.md",),
    "local_training": ("learning.md",),
    "server_update": ("learning.md",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_catalogue_names_every_one_of_ours(kind: str) -> None:
    pages = DESCRIBED.get(kind, ("worlds.md",))
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    missing = [name for name in KINDS[kind].ours if not re.search(rf"""[`"]{name}[`"]""", text)]
    assert missing == [], f"described in none of {', '.join(f'docs/{page}' for page in pages)}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_own_parts_says_where_each_is_set_and_what_it_derives_from(kind: str) -> None:
    base = KINDS[kind].base
    rows = [line for line in (DOCS / "extending.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    (row,) = [line for line in rows if f"`{base.plugin_field}`" in line]
    named = [resolve_name(name) for name in re.findall(r"`(feelstream[\w.]+)`", row)]
    assert not KINDS[kind].has_settings or any(base in (each, getattr(each, base.__name__, None)) for each in named)


def test_the_docs_stay_short() -> None:
    """At most 32,000 words without the reference and the archive."""
    counted = [page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in ("archive", "reference")]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in counted) <= 32_000


def test_the_menu_names_pages_that_exist() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert [page for page in re.findall(r"[\w/-]+\.md", menu) if not _exists(DOCS / page)] == []
