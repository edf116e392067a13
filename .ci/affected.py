"""Print the Python files whose types a change can break, for `make quick`.

Those that differ from a commit (the last one, unless another is given), and those of the packages that import them.
Where that cannot be known, everything: `src` and `studies`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
CHECKED = ("src", "studies", "tests", "benchmarks", "soak")
PACKAGES = {"feelstream": "src", "feelstream_studies": "studies/src"}
ALL = tuple(PACKAGES.values())


def affected(changed: Iterable[str], importers: Callable[[str], set[str]], hands_on: Callable[[str], bool]) -> set[str]:
    """Modules that are changed or import one that is; a package hands the names that it imports on to its importers."""
    found, new = set(changed), set(changed)
    while new:
        reached = set().union(*(importers(module) for module in new)) - found
        found |= reached
        new = {module for module in reached if hands_on(module)}
    return found


def module_of(file: str) -> str:
    parts = Path(file.removeprefix("studies/")).relative_to("src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_of(module: str) -> Path:
    path = Path(PACKAGES[module.partition(".")[0]], *module.split("."))
    return path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")


def differing(commit: str) -> list[str]:
    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words, "--", *CHECKED], cwd=ROOT, capture_output=True, text=True, check=True)
        return [name for name in done.stdout.splitlines() if name.endswith((".py", ".pyi"))]

    return [*git("diff", "--name-only", "--no-renames", commit), *git("ls-files", "--others", "--exclude-standard")]


def files(commit: str) -> list[str]:
    changed = differing(commit)
    package = {module_of(file) for file in changed if file.startswith(tuple(f"{top}/" for top in ALL))}
    graph = grimp.build_graph(*PACKAGES, cache_dir=None) if package else None
    if graph is None:
        return sorted(file for file in changed if (ROOT / file).is_file())
    if not package <= graph.modules:  # removed, or a stub
        return [*ALL]
    reached = affected(
        package, graph.find_modules_that_directly_import, lambda module: (ROOT / file_of(module)).name == "__init__.py"
    )
    return sorted(
        {file_of(module).as_posix() for module in reached} | {file for file in changed if (ROOT / file).is_file()}
    )


if __name__ == "__main__":
    try:
        print(*files(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
    except (OSError, subprocess.CalledProcessError):  # no git, or no such commit
        print(*ALL)
