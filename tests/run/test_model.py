"""The model at the end of a run, in memory and in a directory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from builders import small

import feelstream as fs
from feelstream.errors import RunError
from feelstream.run import simulate_in

LEARNING = ("learning.engine=native", "learning.lr=0.1", "learning.steps=3")


def test_the_model_is_that_of_the_last_round(tmp_path: Path) -> None:
    run = fs.simulate(small(*LEARNING), 3)
    last = run.rounds.row(-1, named=True)
    evaluation = run.model().evaluate()
    assert (evaluation.accuracy, evaluation.loss) == (last["accuracy"], last["loss"])
    run.save(tmp_path / "saved")
    assert np.array_equal(fs.read(tmp_path / "saved").model().theta, run.model().theta)


def test_weights_are_those_of_the_layers() -> None:
    model = fs.simulate(small(*LEARNING)).model()
    ((weight, bias),) = model.weights()
    assert (weight.shape, bias.shape) == ((10, 784), (10,))
    assert np.array_equal(np.concatenate([weight.ravel(), bias]), model.theta)


def test_without_a_model_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="learned nothing"):
        fs.simulate(small()).model()
    run = simulate_in(tmp_path / "run", small(*LEARNING))
    (tmp_path / "run" / "model.npz").write_bytes(b"PK damaged")
    with pytest.raises(RunError, match="is damaged"):
        run.model()
    (tmp_path / "run" / "model.npz").unlink()
    with pytest.raises(RunError, match=r"model\.npz is missing"):
        run.model()


def test_a_run_shows_itself() -> None:
    run = fs.simulate(small(*LEARNING), 1)
    assert repr(run) == "Run(lyapunov, seed 1, 8 rounds)"
    (row,) = run.summary().rows(named=True)
    last = run.rounds.row(-1, named=True)
    assert row["accuracy"] == last["accuracy"]
    assert row["energy_over_budget"] == pytest.approx(last["energy_mean_cum_j"] / 5e-4)
    assert run.plot().axes[0].get_ylabel().replace("\n", " ") == "Test accuracy (%)"
    assert len(fs.simulate(small()).plot().axes) == 3  # nothing was learned, so no accuracy
    page = run._repr_html_()
    assert "<table>" in page
    assert "data:image/png;base64," in page
    assert "http" not in page


def test_without_pandas_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(fs.FeelstreamError, match=r"feelstream\[pandas\]"):
        fs.simulate(small()).to_pandas()


@pytest.mark.nightly
def test_a_run_is_a_table_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert isinstance(fs.simulate(small()).to_pandas(), pandas.DataFrame)
