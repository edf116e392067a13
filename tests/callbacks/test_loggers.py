"""Experiment trackers, on local files: what they show is the rounds table."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import small

import feelstream as fs
from feelstream.callbacks import LOGGERS
from feelstream.errors import FeelstreamError

SCENARIO = ("learning.engine=native", "learning.eval_every=3")


@pytest.mark.nightly
def test_tensorboard_has_a_scalar_for_each_column(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = fs.simulate(small(*SCENARIO), 2, callbacks=[LOGGERS["tensorboard"](tmp_path / "tb")])
    accumulator = events.EventAccumulator(str(tmp_path / "tb"), size_guidance={"tensors": 0})
    accumulator.Reload()
    assert set(accumulator.Tags()["tensors"]) == set(run.rounds.columns) - {"round"}
    for column in ("energy_mean_cum_j", "accuracy"):
        kept = run.rounds.drop_nulls(column)
        seen = accumulator.Tensors(column)
        assert [event.step for event in seen] == kept["round"].to_list()
        values = [event.tensor_proto.float_val[0] for event in seen]
        assert values == pytest.approx(kept[column].to_list(), rel=1e-6)  # kept as float32
    assert "seed 2" in (tmp_path / "tb" / "scenario-seed2.toml").read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow's own use of SQLAlchemy
def test_mlflow_has_the_scenario_and_the_metrics(tmp_path: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    pytest.importorskip("sqlalchemy")
    run = fs.simulate(small(*SCENARIO), 2, callbacks=[LOGGERS["mlflow"](tmp_path / "ml")])
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'ml' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("feelstream")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.params["policy.V"] == "0.05"
    assert found.data.params["seed"] == "2"
    kept = run.rounds.drop_nulls("accuracy")
    history = client.get_metric_history(found.info.run_id, "accuracy")
    assert [(m.step, m.value) for m in history] == list(kept.select("round", "accuracy").iter_rows())


def test_wandb_is_offline_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in: the real one is a service, and its client is large."""
    said: list[tuple[str, object]] = []
    session = SimpleNamespace(
        log=lambda values, step: said.append(("log", (step, values))), finish=lambda: said.append(("finish", None))
    )

    def init(**settings: object) -> object:
        said.append(("init", settings))
        return session

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))  # type: ignore[arg-type]
    run = fs.simulate(small(*SCENARIO), 2, callbacks=[LOGGERS["wandb"](tmp_path / "wandb")])
    (first, settings), *logged, (last, _) = said
    assert (first, last) == ("init", "finish")
    assert isinstance(settings, dict)
    assert settings["mode"] == "offline"
    assert settings["config"]["policy.V"] == 0.05
    assert [entry[1][0] for entry in logged] == run.rounds["round"].to_list()  # type: ignore[index]
    assert "accuracy" not in logged[0][1][1]  # type: ignore[index]


def test_missing_trackers_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in zip(LOGGERS, ("tensorboard.summary", "mlflow.tracking", "wandb"), strict=True):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(FeelstreamError, match=rf"pip install '{name}>="):
            LOGGERS[name](tmp_path)
