"""Try an installed wheel as a newcomer would: `feelstream run tiny`, then the README's Python example.

    python tests/native/try_wheel.py ENVIRONMENT

Runs in a directory of its own, so that nothing of the source tree can be imported by mistake.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def readme_example() -> str:
    """The first Python block of the README, on the small scenario that needs no download."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    if block is None or "paper-iid" not in block[1]:
        raise SystemExit("the README has no Python example with the preset paper-iid")
    return block[1].replace("paper-iid", "tiny")


def main() -> None:
    commands = Path(sys.argv[1]).resolve() / "bin"
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run([commands / "feelstream", "run", "tiny", "--out", "runs/tiny"], cwd=empty, check=True)
        subprocess.run([commands / "feelstream", "verify", "runs/tiny"], cwd=empty, check=True)
        example = readme_example() + "\nprint(f'the README example ran; engine: {run.about[\"engine\"]}')\n"
        subprocess.run([commands / "python", "-I", "-W", "error", "-c", example], cwd=empty, check=True)


if __name__ == "__main__":
    main()
