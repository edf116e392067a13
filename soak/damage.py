"""Files of a run, complete or under way, changed by a disk or a hand: told, or without effect; never silent."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import feelstream as fs
from feelstream.run import simulate_in
from soak.attack import Attack, Lost

SETTINGS = ["learning.engine=none", "system.rounds=12"]


class Damage(Attack):
    name = "damage"

    def prepare(self) -> None:
        self.scenario = fs.preset("tiny", SETTINGS)
        self.right = simulate_in(self.place / "complete", self.scenario, 3).manifest.digests
        simulate_in(self.place / "foreign", self.scenario, 4)
        for name, seed in (("under_way", 3), ("foreign_under_way", 4)):
            self._interrupted(self.place / name, seed)

    def _interrupted(self, directory: Path, seed: int) -> None:
        def stop(record: object) -> None:
            if record.observation.round == 9:  # type: ignore[attr-defined]
                raise InterruptedError

        with suppress(InterruptedError):
            simulate_in(directory, self.scenario, seed, progress=stop, checkpoint_s=0)

    def trial(self, directory: Path) -> str:
        state = self.draw.choice(["complete", "under_way"])
        run = directory / "run"
        shutil.copytree(self.place / state, run)
        files = sorted(file for file in run.rglob("*") if file.is_file())
        file = self.draw.choice(files)
        kind = self.draw.choice(["bit", "byte", "cut", "zeros", "swap", "foreign", "gone", "longer"])
        self.what = f"{state}, {file.relative_to(run)}, {kind}"
        self._spoil(file, kind, files, run, state)
        played = simulate_in(run, self.scenario, 3).manifest.digests  # goes on, or reads what is there
        if played != self.right:
            raise Lost("other digests in run.json")
        again = fs.read(run)
        whole = fs.read(self.place / "complete")
        assert whole.devices is not None
        if not again.rounds.equals(whole.rounds) or again.devices is None or not again.devices.equals(whole.devices):
            raise Lost("other values were read")
        if not fs.verify(run).ok:
            raise Lost("verify disagrees with what was read without complaint")
        return self.what

    def _spoil(self, file: Path, kind: str, files: list[Path], run: Path, state: str) -> None:
        content = bytearray(file.read_bytes())
        at = self.draw.randrange(len(content)) if content else 0
        if kind == "bit" and content:
            content[at] ^= 1 << self.draw.randrange(8)
        elif kind == "byte" and content:
            content[at] = self.draw.randrange(256)
        elif kind == "cut":
            del content[at:]
        elif kind == "zeros":
            content[at : at + 64] = bytes(len(content[at : at + 64]))
        elif kind == "longer":
            content += bytes(self.draw.randrange(256) for _ in range(8))
        elif kind == "swap":
            other = self.draw.choice(files)
            mine, theirs = bytes(content), other.read_bytes()
            other.write_bytes(mine)
            content = bytearray(theirs)
        elif kind == "foreign":
            source = self.place / ("foreign" if state == "complete" else "foreign_under_way") / file.relative_to(run)
            content = bytearray(source.read_bytes() if source.is_file() else b"")
        if kind == "gone":
            file.unlink()
        else:
            file.write_bytes(content)
