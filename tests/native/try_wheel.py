"""Try an installed package as a newcomer would: the help, all of docs/getting-started.md, then the README's example.

    python tests/native/try_wheel.py ENVIRONMENT

Runs in a directory of its own, so that nothing of the source tree can be imported by mistake.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from pages import DOCS, ROOT, Block, blocks


def readme_example() -> str:
    """The first Python block of the README, which is on the small scenario that needs no download."""
    example = next(block.text for block in blocks(ROOT / "README.md") if block.language == "python")
    if '"tiny"' not in example:
        raise SystemExit("the first Python example of the README is not on the preset tiny")
    return example


def follow(page: Path, commands: Path, directory: str) -> None:
    """Do what a page says, from top to bottom: save its files, run its Python and its commands."""
    done = [try_block(block, commands, directory) for block in blocks(page)]
    if not done:
        raise SystemExit(f"{page.name} has no block to run")
    print(f"all {len(done)} blocks of {page.name} ran")


def try_block(block: Block, commands: Path, directory: str) -> None:
    if block.file:
        (Path(directory) / block.file).write_text(block.text, encoding="utf-8")
        return
    print(block.text, flush=True)
    if block.language == "python":  # as a script, and without a guard: worker processes must not run it again
        script = Path(directory) / f"line_{block.line}.py"
        script.write_text(block.text, encoding="utf-8")
        run([commands / "python", "-I", "-W", "error", script.name], commands, directory)
    else:
        run(["bash", "-euc", block.text], commands, directory)


def run(words: list[str | Path], commands: Path, directory: str, quiet: bool = False) -> None:
    """With the environment's commands first; neither one that happens to be active nor a source tree may help."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    out = subprocess.DEVNULL if quiet else None
    subprocess.run(words, cwd=directory, env=own | {"PATH": path}, check=True, stdout=out)


def try_help(commands: Path, directory: str) -> None:
    """Every command that `--help` lists has a help of its own, without any extra."""
    listed = subprocess.run(
        [commands / "feelstream", "--help"], cwd=directory, check=True, capture_output=True, text=True
    )
    names = re.findall(r"^│ ([a-z]+) ", listed.stdout, re.MULTILINE)
    if not {"run", "compare", "studio", "flower", "study"} <= set(names):
        raise SystemExit(f"feelstream --help lists only {names}")
    for name in names:
        run([commands / "feelstream", name, "--help"], commands, directory, quiet=True)
    print(f"{len(names)} commands have a help", flush=True)


def main() -> None:
    commands = Path(sys.argv[1]).resolve() / "bin"
    with tempfile.TemporaryDirectory() as empty:
        try_help(commands, empty)
        follow(DOCS / "getting-started.md", commands, empty)
    with tempfile.TemporaryDirectory() as empty:  # another one: both keep their first run under the same name
        example = (
            readme_example()
            + '\nprint(f\'the README example ran; engine: {found.run("lyapunov", 0).about["engine"]}\')\n'
        )
        try_block(Block("python", None, example, 1), commands, empty)


if __name__ == "__main__":
    main()
