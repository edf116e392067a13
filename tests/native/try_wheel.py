"""Try an installed wheel as a newcomer would: all of docs/getting-started.md as it stands, then the README's example.

    python tests/native/try_wheel.py ENVIRONMENT

Runs in a directory of its own, so that nothing of the source tree can be imported by mistake.
"""

from __future__ import annotations

import os
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
    words = [commands / "python", "-I", "-W", "error", "-c"] if block.language == "python" else ["bash", "-euc"]
    # Neither an environment that happens to be active nor a source tree may help.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([*words, block.text], cwd=directory, env=own | {"PATH": path}, check=True)


def main() -> None:
    commands = Path(sys.argv[1]).resolve() / "bin"
    with tempfile.TemporaryDirectory() as empty:
        follow(DOCS / "getting-started.md", commands, empty)
    with tempfile.TemporaryDirectory() as empty:  # another one: both keep their first run under the same name
        example = (
            readme_example()
            + '\nprint(f\'the README example ran; engine: {found.run("lyapunov", 0).about["engine"]}\')\n'
        )
        try_block(Block("python", None, example, 1), commands, empty)


if __name__ == "__main__":
    main()
