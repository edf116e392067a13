"""Write docs/reference/scenario.md from the settings themselves, so that the page cannot disagree with the program.

python docs/make_scenario.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from feelstream.scenario import Scenario
from feelstream.scenario.fields import kinds
from feelstream.scenario.files import presets

PAGE = Path(__file__).with_name("reference") / "scenario.md"

INTRODUCTION = """\
# Scenario fields

Made by `python docs/make_scenario.py`; do not edit by hand.

A scenario is a TOML file with these tables ([how to make one](../how-to/scenario.md)). A field that is left out has the
default shown, which is the paper's value if the paper gives one. Units are SI, paths are relative to the directory in
which the command is given. The last column is what a field accepts by itself; `V` may also be `inf`. What fields must
keep together, such as a mean SNR between 1e-100 and 1e100, is checked when a scenario is read, and a wrong value is
refused with one sentence.
"""

TABLES = {
    "cpu.energy": "What computing costs at a frequency. docs/silicon.md shows what follows from it.",
    "costs.rule": "What a round costs each device: what the fields of [costs], [cpu] and [radio] say, or a rule of "
    "your own (docs/extending.md).",
    "data.partition": "Who may ever see which sample.",
    "data.arrivals": "When samples reach the devices, and in which order.",
    "data.buffer": "Which of the samples that arrived a device still holds.",
    "data.features": "The vector by which a server knows data: label counts, or what devices report. docs/features.md "
    "says more.",
    "world.frequency": "The CPU frequency that a device has to spare.",
    "world.channel": "How the channel's small-scale fading hangs together over time.",
    "world.mobility": "Where the mean channel gain comes from.",
    "world.availability": "Which devices can be reached in a round.",
    "world.harvest": "Energy that flows into batteries, without which nothing is scheduled.",
    "world.faults": "Which updates never arrive, for a reason other than the channel.",
    "learning.local": "What a scheduled device does with its data. docs/learning.md says more.",
    "learning.server": "How the server changes the model by the updates that arrive; docs/learning.md says more. "
    "`gaussian`, `quantise` and `top_k` have `inner`, a table of the same kind (default `fedavg`), for what combines "
    "the updates.",
    "policy": "Who is scheduled. docs/policies.md says what each rule does.",
}


def page() -> str:
    parts = [INTRODUCTION]
    for section, field in Scenario.model_fields.items():
        if section == "policy":
            parts.append(_named_table(section))
            continue
        model: Any = field.annotation
        parts.append(f"## [{section}]\n\n{rows(model)}")
        parts += [_named_table(name) for name in TABLES if name.startswith(f"{section}.")]
    listed = "\n".join(f"| `{name}` | {about} |" for name, about in presets().items())
    parts.append(f"## Presets\n\n| preset | what it is |\n|---|---|\n{listed}\n")
    return "\n".join(parts)


def _named_table(name: str) -> str:
    kind = kinds()[tuple(name.split("."))]
    lines = [
        f"## [{name}]",
        "",
        f"{TABLES[name]} `{kind.tag_field}` is one of the names below; the default is `{kind.default.tag}`.",
    ]
    for tag, plugin in kind.ours.items():
        described = " ".join((plugin.__doc__ or "").split("\n\n")[0].split())
        lines += ["", f"### `{tag}`", "", described, "", rows(plugin)]
    return "\n".join(lines)


def rows(model: type[BaseModel]) -> str:
    schema = model.model_json_schema()["properties"] if model.model_fields else {}
    rows = [
        f"| `{name}` | {_default(field.default)} | {(field.description or '').replace('|', chr(92) + '|')} "
        f"| {accepted(schema[name])} |"
        for name, field in model.model_fields.items()
        if field.default_factory is None
    ]
    head = "| field | default | meaning, unit, range | numbers accepted |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n" if rows else "No fields.\n"


def accepted(field: dict[str, Any]) -> str:
    """The exact range of a number, or of each number of a list; empty for what is none."""
    kinds = [kind.get("items", kind) for kind in field.get("anyOf", [field])]
    kinds = [kind.get("prefixItems", [kind])[0] for kind in kinds]
    ranges = [_range(kind) for kind in kinds if kind.get("type") in ("number", "integer")]
    return ranges[0] if ranges else ""


def _range(kind: dict[str, Any]) -> str:
    least, most = kind.get("magnitude", (None, None))
    low, high = kind.get("minimum", least), kind.get("maximum", most)
    below = f"at most {_number(high)}" if high is not None else f"below {_number(kind['exclusiveMaximum'])}"
    if low is None:
        return f"above {_number(kind['exclusiveMinimum'])}, {below}"
    if least is not None and low < least:
        return f"{_number(low)}, or {_number(least)} to {_number(high)}"
    return f"{_number(low)} to {_number(high)}" if high is not None else f"at least {_number(low)}, {below}"


def _number(value: float) -> str:
    """As it is written in a file: 1e-100, 0.001, 2147483647."""
    return f"{value:.12g}".replace("e+", "e").replace("e-0", "e-").replace("e0", "e")


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return "none: must be given"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
