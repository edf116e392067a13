"""Every header of the engine includes what it needs: alone in a file, it compiles."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from patience import PATIENCE_S

NATIVE = Path(__file__).parents[2] / "src" / "native"
HEADERS = sorted(header.name for header in NATIVE.glob("*.hpp"))


def compiler() -> str:
    found = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "g++", "clang++"))), None)
    return found or pytest.skip("needs GCC or Clang")


@pytest.mark.nightly
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone(header: str):
    command = [
        compiler(), "-std=gnu++17", "-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
        f"-I{NATIVE}", "-",
    ]  # fmt: skip
    done = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
