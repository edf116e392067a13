"""SIGINT and SIGTERM: every command ends at once with a sentence, leaves nothing behind, and goes on later."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from patience import PATIENCE_S

import feelstream as fs
from feelstream import cli, signals
from feelstream.run import simulate_in

SOURCE = str(Path(fs.__file__ or "").parents[1])
QUICK = ["--set", "learning.engine=none", "--set", "trace.level=full"]
LONG = ["--set", "system.rounds=100000"]


class Started:
    """The command, with its standard error on a pseudo-terminal or in a pipe, which is read all the time."""

    def __init__(self, arguments: list[str], cwd: Path, terminal: bool = False, python: tuple[str, ...] = ()) -> None:
        self.reading, writing = pty.openpty() if terminal else os.pipe()
        command = [sys.executable, *python, "-m", "feelstream", *arguments]
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        self.process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=writing, env=environment)
        os.close(writing)
        self.text, self.over, self.more = b"", False, threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how a pseudo-terminal says that nobody writes any more
            while more := os.read(self.reading, 65536):
                with self.more:
                    self.text += more
                    self.more.notify_all()
        os.close(self.reading)
        with self.more:
            self.over = True
            self.more.notify_all()

    def says(self, words: bytes) -> None:
        """Wait until it has written the words."""
        with self.more:
            assert self.more.wait_for(lambda: words in self.text or self.over, PATIENCE_S)
            assert words in self.text, "it ended before it was interrupted"

    def ended(self) -> tuple[int, str]:
        """The exit code and what was said."""
        try:
            code = self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.reader.join()
        return code, " ".join(self.text.decode(errors="replace").split())


def came_to_be(command: Started, pattern: str, where: Path) -> bool:
    """Wait for such a file; whether the command was still at work when there was one."""
    end = time.monotonic() + PATIENCE_S
    while not any(where.rglob(pattern)):
        if command.process.poll() is not None:
            return False
        assert time.monotonic() < end
        time.sleep(0.01)  # another process is at work; there is nothing else to wait for
    return True


def wait_for(command: Started, pattern: str, cwd: Path) -> None:
    assert came_to_be(command, pattern, cwd), "it ended before it was interrupted"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "number", "terminal"),
    [
        ("run", signal.SIGINT, True),
        ("compare", signal.SIGTERM, False),
        pytest.param("compare", signal.SIGINT, True, marks=pytest.mark.nightly),
    ],
)
def test_a_command_under_way_ends_with_a_sentence(command: str, number: int, terminal: bool, tmp_path: Path) -> None:
    more = ["--workers", "2", "--seeds", "2"] if command == "compare" else []
    under_way = Started([command, "tiny", *QUICK, *LONG, *more, "--out", "out"], tmp_path, terminal)
    wait_for(under_way, "checkpoint.json", tmp_path)
    under_way.process.send_signal(number)
    code, text = under_way.ended()
    assert code == 128 + number
    assert "the same command goes on where this one stopped" in text
    assert "Traceback" not in text
    assert [file for file in tmp_path.rglob(".*.tmp") if file.parent.name != "progress"] == []


@pytest.mark.slow
@pytest.mark.parametrize("module", ["feelstream.signals", "numpy", "polars", "feelstream.loop.simulation"])
def test_an_interrupt_while_modules_are_imported_prints_no_traceback(module: str, tmp_path: Path) -> None:
    """From the first module on that is imported after start.py decided; what was before belongs to Python itself."""
    begun = Started(["run", "tiny", *QUICK, *LONG, "--out", "out"], tmp_path, python=("-X", "importtime"))
    begun.says(f" {module}\n".encode())
    begun.process.send_signal(signal.SIGINT)
    code, text = begun.ended()
    assert code in (128 + signal.SIGINT, -signal.SIGINT)
    assert "Traceback" not in text


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    for rounds in (2_000, 20_000, 200_000):  # it may be over before this process sees that it has begun
        changes, out = ["learning.engine=none", f"system.rounds={rounds}"], tmp_path / f"out-{rounds}"
        words = [word for change in changes for word in ("--set", change)]
        begun = Started(["run", "tiny", *words, "--out", str(out)], tmp_path)
        if came_to_be(begun, "checkpoint.json", out):
            begun.process.send_signal(signal.SIGTERM)
        if begun.ended()[0] != 0:
            break
    scenario = fs.preset("tiny", changes)
    alone = simulate_in(tmp_path / "alone", scenario).manifest
    assert simulate_in(out, scenario).manifest.digests == alone.digests


def test_an_interrupt_that_a_library_makes_an_error_of_is_still_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def wrapped(*_: object, **__: object) -> None:  # as pydantic does with what is raised while it serialises
        raise RuntimeError("Error calling function: KeyboardInterrupt")

    monkeypatch.setattr(cli, "get_command", lambda app: wrapped)
    monkeypatch.setattr(signals, "received", [])
    with pytest.raises(RuntimeError):
        cli.main()
    monkeypatch.setattr(signals, "received", [signal.SIGTERM])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 128 + signal.SIGTERM
    assert "goes on where this one stopped" in " ".join(capsys.readouterr().err.split())


def test_the_exit_code_is_ours_wherever_the_interrupt_came() -> None:
    """Python ends by SIGINT once an interrupt came while text was executed, as by the making of a dataclass."""
    lines = [
        "from feelstream import signals",
        "try:",
        "    exec('raise KeyboardInterrupt')",
        "except KeyboardInterrupt:",
        "    print('tidied', flush=False)",
        "signals.exit_with(143)",
    ]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (143, b"tidied\n"), done.stderr


def test_an_interrupt_that_python_cannot_raise_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in the callback of a weak reference, where the watching thread has to end the process."""
    monkeypatch.setattr(sys, "unraisablehook", signals._ignored)

    def unraisable(problem: type[BaseException]) -> str:
        class Gone:
            def __del__(self) -> None:
                raise problem

        gone = Gone()
        del gone
        return capsys.readouterr().err

    monkeypatch.setattr(signals, "received", [])
    assert "KeyboardInterrupt" in unraisable(KeyboardInterrupt)  # nobody sent a signal: that is told as ever
    monkeypatch.setattr(signals, "received", [signal.SIGINT])
    assert unraisable(KeyboardInterrupt) == ""
    assert "ValueError" in unraisable(ValueError)
