"""Formulas become MathML when the site is built: browsers typeset it themselves, without a script or a network.

$…$ and $$…$$ are found by pymdownx.arithmatex, which leaves code alone. Symbols with an index that pages write
plainly, as Q_k, E~_k, E_k^avg or I*, are taken for formulas as well. What cannot be converted is a warning, and the
build is strict.
"""

from __future__ import annotations

import logging
import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

log = logging.getLogger("mkdocs.hooks.mathematics")
FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
LEFT_ALONE = r"^```.*?^```|\n\n(?: {4}.*\n?)+|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)]*\)|^:::.*"
SYMBOL = re.compile(
    rf"(?P<other>{LEFT_ALONE})"
    r"|(?<![\w\\{.*])(?P<letter>min|max|[A-Za-zα-ωΑ-Ω])(?P<tilde>~?)"
    r"(?:_(?P<index>[A-Za-z0-9]+|\{[^}\n]+\})(?:\^(?P<power>avg))?(?P<square>[²³])?|(?=\*)|(?<=~)(?=\())"
    r"(?P<star>\*)?(?P<of>\([tT1](?:\+1)?\))?(?![A-Za-z0-9_=*])",
    re.DOTALL | re.MULTILINE,
)
PAGES = ("model.md", "derivation.md", "joint.md", "policies.md", "reference/trace.md")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    return SYMBOL.sub(symbol, markdown) if page.file.src_uri in PAGES else markdown


def symbol(found: re.Match[str]) -> str:
    """E~_k^avg as $\\tilde E_k^{\\mathrm{avg}}$; an index of more than one letter stands upright."""
    if found["other"] is not None:
        return found["other"]
    letter = rf"\{found['letter']}" if len(found["letter"]) > 1 else found["letter"]
    tex = rf"\tilde {letter}" if found["tilde"] else letter
    if index := found["index"]:
        tex += f"_{index}" if len(index) == 1 or index[0] == "{" else rf"_{{\mathrm{{{index}}}}}"
    if power := found["power"]:
        tex += rf"^{{\mathrm{{{power}}}}}"
    if found["star"]:
        tex += "^*"
    if square := found["square"]:
        tex += {"²": "^2", "³": "^3"}[square]
    return f"${tex}{found['of'] or ''}$"


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    return FOUND.sub(lambda found: typeset(found, page.file.src_uri), html)


def typeset(found: re.Match[str], where: str) -> str:
    block, tex = found[1] == "div", unescape(found[2]).strip()
    try:
        markup = convert(tex, display="block" if block else "inline")
    except Exception as problem:  # the converter has no common type for what it refuses
        log.warning("%s: the formula %r cannot be typeset: %r", where, tex, problem)
        return found[0]
    if {"\\", "&"} & set(left := unescape(re.sub(r"<[^>]+>", "", markup))):
        log.warning("%s: the formula %r is not understood: %s", where, tex, left)
    return f'<div class="formula">{markup}</div>' if block else markup
