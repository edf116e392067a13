"""Which files a Python file brings with it: those beside it, but not every library beside an installed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from feelstream.user_code import imported_from_beside

POLICY = "import library\nimport own.numbers\nfrom own import words\nfrom . import near\n"


@pytest.mark.parametrize(("place", "others"), [("project", ["library.py"]), ("some-packages", [])])
def test_only_an_installed_package_does_not_bring_its_neighbours(
    place: str, others: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / place
    (root / "own").mkdir(parents=True)
    files = {"own/__init__.py": "", "own/policy.py": POLICY, "library.py": "import further\n", "further.py": ""}
    files |= {f"own/{name}.py": "" for name in ("numbers", "words", "near")}
    for name, text in files.items():
        (root / name).write_text(text)
    monkeypatch.syspath_prepend(str(root))
    found = {file.relative_to(root.resolve()).as_posix() for file in imported_from_beside(root / "own" / "policy.py")}
    own = {"own/__init__.py", "own/numbers.py", "own/words.py", "own/near.py"}
    assert found == {*own, *others, *(["further.py"] if others else [])}


def test_a_module_among_installed_ones_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "some-packages"
    root.mkdir()
    (root / "policy.py").write_text("import library\n")
    (root / "library.py").write_text("")
    monkeypatch.syspath_prepend(str(root))
    assert imported_from_beside(root / "policy.py") == []
