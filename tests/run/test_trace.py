"""What a run leaves, in memory and in a directory: its rows, its model, and how it shows itself."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from builders import devices_of, small
from stopped import stop_in

import feelstream as fs
from feelstream.columns import spent_j
from feelstream.errors import RunError
from feelstream.run import dataset_of, simulate_in
from feelstream.run.run import saved_so_far

LEARNING = ("learning.engine=native", "learning.lr=0.1", "learning.steps=3")


def test_the_model_is_that_of_the_last_round(tmp_path: Path) -> None:
    run = fs.simulate(small(*LEARNING), 3)
    model, last, data = run.model(), run.rounds.row(-1, named=True), dataset_of(run.scenario)
    evaluation = model.evaluate()
    assert (evaluation.accuracy, evaluation.loss) == (last["accuracy"], last["loss"])
    said = model.predict(data.test_images)
    assert (said == data.test_labels).mean() == last["accuracy"]
    assert np.array_equal(model.predict(data.test_images[:7]), said[:7])
    with pytest.raises(RunError, match=r"samples must be uint8 of shape \(n ≥ 1, 1, 28, 28\)"):
        model.predict(data.test_images[0])
    ((weight, bias),) = model.weights()
    assert (weight.shape, bias.shape) == ((10, 784), (10,))
    assert np.array_equal(np.concatenate([weight.ravel(), bias]), model.theta)
    run.save(tmp_path / "saved")
    assert np.array_equal(fs.read(tmp_path / "saved").model().theta, model.theta)


def test_without_a_model_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="learned nothing"):
        fs.simulate(small()).model()
    stop_in(tmp_path / "stopped", small(*LEARNING), at=4)
    with pytest.raises(RunError, match="the run is not finished, or its app kept the model, so there is none here"):
        fs.read(saved_so_far(tmp_path / "stopped")).model()
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
    with pytest.raises(fs.FeelstreamError, match=r"pandas is not installed; get it with pip install 'pandas>="):
        fs.simulate(small()).to_pandas()


@pytest.mark.nightly
def test_a_run_is_a_table_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert isinstance(fs.simulate(small()).to_pandas(), pandas.DataFrame)


@pytest.mark.parametrize(
    ("overrides", "beside"),
    [
        (["policy.name=random"], None),
        (["policy.name=update_norm"], "e_report_j"),
        (["costs.download_bits=1e6", "costs.receive_power_w=0.3"], "e_down_j"),
    ],
    ids=["neither", "reports", "downloads"],
)
def test_what_a_device_spent_is_what_its_queue_grows_by(overrides: list[str], beside: str | None) -> None:
    """Q' = max(Q + E − E_avg, 0), to the last bit."""
    devices = devices_of(fs.simulate(fs.preset("tiny", overrides), 3))
    assert beside is None or (devices[beside] > 0).any()
    grown = devices["queue_j"].to_numpy() + spent_j(devices).to_numpy() - 0.08  # E_avg of tiny
    assert (grown > 0).any()
    np.testing.assert_array_equal(np.maximum(grown, 0.0), devices["queue_next_j"].to_numpy())
    assert spent_j(devices.row(1, named=True)) == spent_j(devices)[1]
