"""Print the lowest version of every run-time dependency that pyproject.toml admits, as constraints for pip."""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
for dependency in project["dependencies"]:
    name, lowest = dependency.split(",")[0].split(">=")
    print(f"{name}=={lowest}")
