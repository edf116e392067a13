"""Pages and parts of pages from templates; whatever is put into one of HTML is escaped, unless it is Markup."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=lambda name: not (name or "").endswith(".md.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Of what goes into scripts: no NaN, which JSON does not know, and no blanks.
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def _source(name: str) -> str:
    package, _, file = name.partition("/")
    return resources.files(package).joinpath(file).read_text(encoding="utf-8")


def render(template: str, /, **values: Any) -> Markup:
    """A template filled in; its name is `package/file`, so that a study has its own beside its code."""
    return Markup(_environment().get_template(template).render(values))
