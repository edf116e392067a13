"""What the report of a study's results has of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feelstream.experiment import Results
from feelstream.report import Content
from feelstream.studies.claims import Claim, Finding, Wording


@dataclass(frozen=True)
class Page(Content):
    """The content of a report, with claims that are judged, and a page for the docs if the study writes one.

    Attributes:
        claims: What is judged on the results.
        wording: How the page speaks of them.
        facts: More to say in claims.json.
        docs: Directory, results, findings → the page that was written there; None: there is none.
    """

    claims: Sequence[Claim] = ()
    wording: Wording = field(default_factory=Wording)
    facts: Mapping[str, Any] = field(default_factory=dict)
    docs: Callable[[Path, Results, Sequence[Finding]], Path] | None = None
