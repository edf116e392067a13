"""What the page on the inside of the engine says about speed, measured on every instruction set of the machine.

    python benchmarks/engine.py             # some minutes on an idle machine; writes its tables
    python benchmarks/engine.py --print     # the same, without touching the page
    python benchmarks/engine.py --smoke     # tiny sizes, nothing written

Each instruction set needs processes of its own, since PyTorch reads its limits when it is loaded; so the sets take
turns, twice each, and the best of both turns counts. PyTorch is held to the same set as the engine, except for the
baseline, where it is left out: there the question is what share of the compiler's own vectors the engine reaches.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from feelstream.learning.native import ISA_VARIABLE, instruction_sets
from machine import described, machine

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "archive" / "engine.md"
BEGIN, END = "<!-- written by benchmarks/engine.py -->", "<!-- end of what benchmarks/engine.py writes -->"
TITLES = {"avx512": "AVX-512", "avx2": "AVX2", "baseline": "baseline"}

Times = dict[str, dict[str, float]]


def turn(script: str, isa: str, options: list[str]) -> dict[str, Any]:
    """One run of another benchmark on one instruction set: the JSON it ends with."""
    command = [sys.executable, str(HERE / script), "--json", *options, *(["--no-torch"] if isa == "baseline" else [])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, ISA_VARIABLE: isa})
    if done.returncode:
        sys.exit(f"{script} failed on {isa}:\n{done.stderr}")
    print(f"{isa}, {script}\n{done.stdout.rpartition(chr(10) + '{')[0]}\n", flush=True)
    return json.loads(done.stdout.splitlines()[-1])


def better(old: Times, new: Times) -> Times:
    """The shorter of two times, one by one."""
    return {
        title: {name: min(time, old.get(title, {}).get(name, time)) for name, time in times.items()}
        for title, times in new.items()
    }


def learner_table(found: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| | native | PyTorch, same set | ratio | of peak |", "|---|---:|---:|---:|---:|"]
    for isa, parts in found.items():
        for title, times in parts["tasks"].items():
            native = times["native_s"]
            torch = times.get("torch_s")
            theirs = f"{torch * 1e3:.2f} ms | {torch / native:.1f}×" if torch else "not measured |"
            share = times["peak_s"] / native
            lines.append(f"| {TITLES[isa]}: {title} | {native * 1e3:.2f} ms | {theirs} | {share:.0%} |")
    return lines


def cores_table(found: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"| two cores against one | {' | '.join(TITLES[isa] for isa in found)} |", "|---" * (len(found) + 1) + "|"]
    for title in next(iter(found.values()))["two cores"]:
        ratios = [times["one_s"] / times["two_s"] for times in (parts["two cores"][title] for parts in found.values())]
        lines.append(f"| {title} | {' | '.join(f'{ratio:.2f}×' for ratio in ratios)} |")
    return lines


def run_table(found: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        "| whole run | time | against its floor | against one core | against PyTorch |",
        "|---|---:|---:|---:|---:|",
    ]
    for isa, parts in found.items():
        for title, times in parts["runs"].items():
            native = times["native_s"]
            torch = f"{times['torch_s'] / native:.1f}×" if "torch_s" in times else "not measured"
            lines.append(
                f"| {TITLES[isa]}: {title} | {native:.2f} s | {native / times['floor_s']:.2f}× | "
                f"{times['one_s'] / native:.2f}× | {torch} |"
            )
    return lines


def section(found: dict[str, dict[str, Any]], about: dict[str, str | float]) -> str:
    peaks = ", ".join(f"{parts['peak_gflops']:.0f} with {TITLES[isa]}" for isa, parts in found.items())
    parts = [
        f"{described(about)}. Peak of a core in GFLOP/s, measured: {peaks}. Load of the machine when it began: "
        f"{about['load']:.1f}.",
        "`paper-cnn`, one thread, processor time of a step or of the whole test set:",
        "\n".join(learner_table(found)),
    ]
    if all(one["two cores"] for one in found.values()):
        parts.append("\n".join(cores_table(found)))
    parts += [
        "`paper-iid`, 40 rounds of 20 steps, all 10,000 test images after each, all cores; the floor is the time of "
        "the plain formulas' multiply-adds at the peak of all cores:",
        "\n".join(run_table(found)),
    ]
    return "\n\n".join(parts)


def written(page: str, section: str) -> str:
    """The page with another section between the two marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"docs/archive/engine.md has lost its marks: {BEGIN} … {END}")
    return f"{head}{begin}\n\n{section}\n\n{end}{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one turn, nothing written")
    parser.add_argument("--print", action="store_true", dest="only_print", help="leave docs/archive/engine.md as it is")
    parser.add_argument("--turns", type=int, default=2, help="turns of each instruction set (default 2)")
    arguments = parser.parse_args()
    about, found = machine(), {}
    options = {"learner.py": ["--repeats", "4"], "run.py": ["--repeats", "1"]}
    if arguments.smoke:
        options = {script: ["--smoke"] for script in options}
    for _ in range(1 if arguments.smoke else arguments.turns):
        for isa in [isa for isa in TITLES if isa in instruction_sets()]:
            old = found.get(isa, {"peak_gflops": 0.0, "tasks": {}, "two cores": {}, "runs": {}})
            learner, runs = (turn(script, isa, more) for script, more in options.items())
            found[isa] = {
                "peak_gflops": max(old["peak_gflops"], learner["peak_gflops"]),
                **{part: better(old[part], learner[part]) for part in ("tasks", "two cores")},
                "runs": better(old["runs"], runs),
            }
    text = section(found, about)
    print(text)
    if not (arguments.smoke or arguments.only_print):
        PAGE.write_text(written(PAGE.read_text(), text))
        print(f"\nwritten: {PAGE}")


if __name__ == "__main__":
    main()
