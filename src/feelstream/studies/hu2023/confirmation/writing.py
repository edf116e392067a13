"""The page of the reproduction, from the table of all runs: in seconds, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feelstream.experiment.measures import with_interval
from feelstream.experiment.panels import curves
from feelstream.experiment.series import SPANS
from feelstream.quantities import number
from feelstream.report.drawing.figures import composite, has_data, save
from feelstream.run.files import usable_directory, write_atomically
from feelstream.studies.claims import EXPLAINED, Verdict
from feelstream.studies.claims.words import DIGITS, cited, verdict
from feelstream.studies.hu2023 import paper
from feelstream.studies.hu2023.claims import LATE, all_claims, claims_of_late
from feelstream.studies.hu2023.confirmation import table as tables
from feelstream.studies.hu2023.confirmation import words
from feelstream.studies.hu2023.confirmation.candidates import CANDIDATES, SEEDS
from feelstream.studies.hu2023.confirmation.evidence import (
    Confirmed,
    confirmed,
    is_excluded,
    lead,
    on_its_side,
    panels,
    saving,
    shown,
)
from feelstream.studies.hu2023.confirmation.finalists import finalists
from feelstream.studies.hu2023.confirmation.widths import CAPTION, PICTURE, has_widths, widths_figure
from feelstream.studies.hu2023.page.docs import DOCS_DPI, HOW_JUDGED, claims_table
from feelstream.studies.hu2023.page.words import FITTED

PAGE = "reproduction.md"
COMMAND = f"feelstream confirm --seeds {len(SEEDS)} --docs docs"
UNDECIDED = (Verdict.OPEN, Verdict.TOO_FEW)


def write(table: Path, docs: Path) -> Path:
    """Write reproduction.md and the figures it shows, as PNG under figures/."""
    found = confirmed(tables.read(table), CANDIDATES)
    drawn = _draw(found[0], docs / "figures") if found else []
    path = usable_directory(docs) / PAGE
    text = page(found, drawn, table.name, confirmed(tables.read(table), finalists(table.parent)))
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def _draw(first: Confirmed, directory: Path) -> list[str]:
    pictures = usable_directory(directory)
    (pictures / ".lock").unlink(missing_ok=True)
    for key in figures(first):
        figure = paper.FIGURES[key]
        drawn = composite(figure, curves([figure], first.rounds))
        save(drawn, pictures, figure.key, formats=("png",), dpi=DOCS_DPI)
    if has_widths(first.rounds):
        save(widths_figure(first.rounds), pictures, PICTURE, formats=("png",), dpi=DOCS_DPI)
    return figures(first)


def figures(first: Confirmed) -> list[str]:
    """Those of the paper's figures that its runs can show."""
    known = set(first.rounds["arm"])
    whole = curves(list(paper.FIGURES.values()), first.rounds)
    return [
        key
        for key, figure in paper.FIGURES.items()
        if key != "fig1-widths"  # the lead by width shows more of it
        and all(curve.arm in known for panel in figure.panels for curve in panel.curves)
        and all(has_data(panel, whole) for panel in figure.panels)
    ]


def page(found: Sequence[Confirmed], drawn: Sequence[str], table: str, finals: Sequence[Confirmed] = ()) -> str:
    parts = [
        "# The paper, reproduced\n",
        opening(found),
        at_a_glance(found),
        "## Figures\n",
        f"The {words.NAMES[found[0].candidate.settings]} specification, fresh data that "
        f"{words.FRESH[found[0].candidate.fresh]}. Lines are means over seeds, shades are 95 % t intervals.\n"
        if found
        else "",
    ]
    for key in drawn:
        figure = paper.FIGURES[key]
        parts.append(f"![{figure.title}](figures/{key}.png)\n\n*{figure.title}.* {figure.caption}\n")
    if found and has_widths(found[0].rounds):
        parts.append(CAPTION)
    parts += [
        "## What this is\n",
        words.INTRODUCTION,
        f"{finding(found)}\n",
        f"This page is written from `docs/results/{table}`, a row per run, by a command; do not edit it:\n",
        f"    {COMMAND}\n",
        words.OTHER_SEEDS,
        words.EARLIER,
        "## How these settings were chosen\n",
        words.HISTORY,
        decision(found),
        words.READINGS,
        "Over other readings and settings: [the multiverse](multiverse.md), and [a page to explore "
        "it](explorer.html).\n",
        *_finalists(finals),
        "## What the paper says, and how it is tested\n",
        statements(),
        "## When is late?\n",
        late(found),
        "## Claims, one by one\n",
        HOW_JUDGED,
        "\n".join(f"- **{each}**: {EXPLAINED[each]}" for each in Verdict if each is not Verdict.TOO_FEW) + "\n",
        f"- †: {FITTED}\n",
    ]
    for each in found:
        parts += [f"### {_name(each)}\n", claims_table(each.findings)]
    left = [each for each in found if each.remaining]
    if left:
        parts.append(
            "## What remains when nobody schedules empty devices\n\n"
            "The comparisons of figure 1 with `data.eligible = with_data`: neither policy may schedule a device that "
            "holds no data yet. The paper does not claim these.\n"
        )
        for each in left:
            parts += [f"### {_name(each)}, only devices with data\n", claims_table(each.remaining)]
    parts += ["## Notes\n", words.OPEN]
    return "\n".join(part for part in parts if part)


def _finalists(finals: Sequence[Confirmed]) -> list[str]:
    """What the search ended with, on the seeds that it never touched; nothing until it ends."""
    parts = ["## What the search ended with\n", f"{searched(finals)}\n"] if finals else []
    for each in finals:
        name, _, settings = str(each.candidate).partition(": ")
        parts += [f"### {name.capitalize()}, {each.seeds} seeds\n", f"Settings: `{settings}`.\n"]
        parts.append(claims_table(each.findings))
    return parts


def searched(finals: Sequence[Confirmed]) -> str:
    """How many claims each finalist of the search has on the seeds that it never touched."""
    said, whole = [], 0
    for each in finals:
        held, failed = each.with_verdict(Verdict.REPRODUCED), each.with_verdict(Verdict.FAILED, Verdict.DIRECTION)
        undecided = each.with_verdict(*UNDECIDED)
        count = len(held) + len(failed) + len(undecided)
        whole += len(held) == count
        name, _, settings = str(each.candidate).partition(": ")
        said.append(
            f"the {name} (`{settings}`) has {len(held)} of {count} claims "
            f"({len(failed)} not reproduced, {len(undecided)} undecided)"
        )
    end = "None has all claims of its figure, so the presets stay as they are." if not whole else ""
    return f"On these seeds, besides the fitted savings: {'; '.join(said)}. {end}".rstrip()


def _name(each: Confirmed) -> str:
    candidate = each.candidate
    return f"{candidate.settings.capitalize()}, fresh = {candidate.fresh}, {each.seeds} seeds"


def finding(found: Sequence[Confirmed]) -> str:
    """The findings in a paragraph, one sentence for each of the first specifications of both settings."""
    sentences = []
    for settings in ("literal", "fitted"):
        own = next((each for each in found if each.candidate.settings == settings), None)
        if own is None:
            continue
        held, failed = own.with_verdict(Verdict.REPRODUCED), own.with_verdict(Verdict.FAILED, Verdict.DIRECTION)
        undecided = own.with_verdict(*UNDECIDED)
        whole = len(held) + len(failed) + len(undecided)
        title = "Read literally" if settings == "literal" else "Under the fitted presets"
        text = (
            f"{title} (fresh = {own.candidate.fresh}, {own.seeds} seeds), of {whole} claims of the paper besides the "
        )
        text += f"fitted energy savings, {len(held)} reproduced{_in(held)}, {len(failed)} not{_in(failed)}, "
        text += f"{len(undecided)} undecided."
        compared = own.accuracy_of_figure_1
        kept = sum(finding.verdict is Verdict.REPRODUCED for finding in compared)
        text += f" Of figure 1's {len(compared)} comparisons of accuracy, {kept or 'none'} reproduced."
        sentences.append(text)
        sentences.append(_empty(own))
    return " ".join(each for each in sentences if each)


def opening(found: Sequence[Confirmed]) -> str:
    """What comes out, in a few plain sentences before any table."""
    firsts = {each.candidate.settings: each for each in reversed(found)}
    if set(firsts) != set(words.NAMES):
        return ""
    literal, fitted = (_counts(firsts[settings]) for settings in words.NAMES)
    saved = " and ".join(shown(saving(firsts["literal"].findings, n), 0, "%") for n in paper.SIZES)
    undecided = firsts["literal"].with_verdict(*UNDECIDED)
    wrong, excluded = sum(not on_its_side(each) for each in undecided), sum(map(is_excluded, undecided))
    return (
        "The energy savings are a fit: the length of the run was chosen to give the published 16 and 35 %, and gives "
        f"{saved}. The leads in accuracy come out in part. Read literally, "
        f"{_told(literal, 'other claims')}: {wrong} of these have their estimate on the wrong side, and in {excluded} "
        f"the plain 95 % interval excludes the claim. With all open settings fitted, {_told(fitted, 'claims')}.\n"
    )


def _told(counts: Sequence[int], what: str) -> str:
    reproduced, failed, undecided = counts
    return f"{reproduced} of {sum(counts)} {what} reproduced, {failed} did not, and {undecided} are undecided"


def _counts(each: Confirmed) -> list[int]:
    """How many claims reproduced, how many did not, and how many are undecided."""
    groups = (Verdict.REPRODUCED,), (Verdict.FAILED, Verdict.DIRECTION), UNDECIDED
    return [len(each.with_verdict(*verdicts)) for verdicts in groups]


def _in(findings: Sequence) -> str:
    return f" ({panels(findings)})" if findings else ""


def _empty(own: Confirmed) -> str:
    """How many of random's slots are empty, and what becomes of the lead without them."""
    random, mine = own.empty_share(paper.random), own.empty_share(paper.proposed)
    before, after = lead(own.findings), lead(own.remaining)
    if random is None or mine is None or before is None:
        return ""
    text = f"{number(100 * random, 0)} % of random's slots, and {number(100 * mine, 0)} % of the proposed policy's, go "
    text += f"to devices without data; the lead in accuracy over the run is {number(before, 1, True)} percentage points"
    if after is not None:
        few = min(finding.ours.n for finding in own.remaining)
        text += f", and {number(after, 1, True)} where neither may schedule such devices ({few} seeds)"
    return text + "."


def decision(found: Sequence[Confirmed]) -> str:
    """Which settings the presets of the paper have, and why."""
    held = {
        settings: [len(each.with_verdict(Verdict.REPRODUCED)) for each in found if each.candidate.settings == settings]
        for settings in words.NAMES
    }
    if not held["literal"] or not held["fitted"]:
        return ""
    literal, fitted = held["literal"][0], held["fitted"][0]
    if literal > fitted:
        return f"The literal specification has more of the claims so far, {literal} against {fitted}.\n"
    return (
        f"The literal specification has no more of the claims so far than the fitted one, {literal} against {fitted}, "
        "so `paper-*` keep their settings and `literal-*` stand beside them. This choice was made on the seeds of the "
        f"test itself, so the {fitted} are those of the better of two.\n"
    )


def at_a_glance(found: Sequence[Confirmed]) -> str:
    lines = [
        "| specification, fresh data | seeds | claims: reproduced, not, undecided | energy saved, n = 2 and 4 | "
        "lead over random: run, end |",
        "|---|---|---|---|---|",
    ]
    for each in found:
        counts, undecided = _counts(each), each.with_verdict(*UNDECIDED)
        signs = sum(map(on_its_side, undecided))
        saved = " and ".join(shown(saving(each.findings, n), 0, "%") for n in paper.SIZES)
        leads = ", ".join(shown(lead(each.findings, span), 1, "pp", signed=True) for span in ("mean", "end"))
        candidate = each.candidate
        lines.append(
            f"| {words.NAMES[candidate.settings]}, {words.FRESH[candidate.fresh]} (`{candidate.fresh}`) | "
            f"{each.seeds} | {', '.join(map(str, counts))} ({signs} with the claimed sign) | {saved} | {leads} |"
        )
    return "\n".join(lines) + "\n"


def statements() -> str:
    lines = ["| figure | claim | the paper's clause | test |", "|---|---|---|---|"]
    lines += [
        f"| {claim.panel} | {claim.statement} | {_cell(cited(claim.quote))} | {claim.measure}: {claim.test} |"
        for claim in all_claims()
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def late(found: Sequence[Confirmed]) -> str:
    """The claims on later iterations, where these are the last quarter, third or half."""
    lines = [f"| specification | claim | {' | '.join(SPANS[span] for span in LATE)} |", "|---|---|---|---|---|"]
    for each in found:
        by_span = [each.judged(claims_of_late(span)) for span in LATE]
        for row in zip(*by_span, strict=True):
            cells = []
            for one in row:
                digits = DIGITS.get(one.claim.unit, 1)
                cells.append(f"{with_interval(one.ours, digits, one.claim.unit, True)}, {verdict(one)}")
            lines.append(f"| {each.candidate} | {row[0].claim.key} | {' | '.join(cells)} |")
    return (
        "“Later iterations” is no number. Each cell is the least lead and its verdict, corrected over the claims of "
        "its column.\n\n" + "\n".join(lines) + "\n"
    )
