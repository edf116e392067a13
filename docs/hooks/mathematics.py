"""Formulas become MathML when the site is built: browsers typeset it themselves, without a script or a network.

$…$ and $$…$$ are found by pymdownx.arithmatex, which leaves code alone. A formula that cannot be converted is a
warning, and the build is strict.
"""

from __future__ import annotations

import logging
import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

log = logging.getLogger("mkdocs.hooks.mathematics")
FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    return FOUND.sub(lambda found: typeset(found, page.file.src_uri), html)


def typeset(found: re.Match[str], where: str) -> str:
    block, tex = found[1] == "div", unescape(found[2]).strip()
    try:
        markup = convert(tex, display="block" if block else "inline")
    except Exception as problem:  # the converter has no common type for what it refuses
        log.warning("%s: the formula %r cannot be typeset: %r", where, tex, problem)
        return found[0]
    if "\\" in (left := re.sub(r"<[^>]+>", "", markup)):
        log.warning("%s: the formula %r is not understood: %s", where, tex, left)
    return f'<div class="formula">{markup}</div>' if block else markup
