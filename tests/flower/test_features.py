"""Features in a deployment: devices count their samples in cells in place of labels, and the server decides by that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import devices_of
from deployed_clients import FAST, at_node, client, grid_of, growing, model, round_of, told
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict

import feelstream as fs
from feelstream.data.datasets import load as load_dataset
from feelstream.data.features import in_cells
from feelstream.experiment.replaying import ask_again
from feelstream.flower import Device, LocalGrid, ScheduledFedAvg, fitted
from feelstream.flower.device import DeviceError
from feelstream.flower.replay import ReplayedDevice, serve, strategy_for
from feelstream.flower.wire import FITTED, REPORT, packed, unpacked

DEVICES, CELLS, SEED = 6, 12, 3
SKETCH = [
    "data.features.kind=sketch", f"data.features.cells={CELLS}", "data.features.components=8",
    "data.features.reference_samples=200", "data.eligible=with_data",
]  # fmt: skip
# What a simulated device pays for its reports comes with replies here: then it must be next to nothing.
FREE = ["reports.cycles=1", "reports.bits=1e-3", "reports.slot_s=1e-3"]
POLICIES = {
    "lyapunov": ["policy.V=inf"],
    "lyapunov, deleting": ["policy.V=inf", "data.buffer.kind=fifo", "data.buffer.capacity=15"],
    "fedcgd": ["policy.name=fedcgd"],
    "balanced": ["policy.name=balanced"],
}


BRIGHT = """
import numpy as np
from feelstream.data.features import Features


class Brightness(Features):
    def size(self, classes):
        return 2

    def vectors(self, state, samples):
        bright = samples.inputs.mean(axis=1) > 0
        return np.stack([~bright, bright], axis=1).astype(float)
"""


PLAIN = [
    "learning.engine=none", f"system.devices={DEVICES}", "system.energy_budget_j=1e3", "system.rounds=8",
    "data.samples=600", "policy.size=2",
]  # fmt: skip


def scenario(*changes: str) -> fs.Scenario:
    return fs.preset("tiny", [*PLAIN, *SKETCH, *changes])


@pytest.mark.parametrize("policy", [*POLICIES, "of one's own"])
def test_a_federation_that_counts_in_cells_decides_as_the_simulator_does(policy: str, tmp_path: Path) -> None:
    (tmp_path / "bright.py").write_text(BRIGHT)
    own = [f"data.features.kind={tmp_path}/bright.py:Brightness"]
    if policy in POLICIES:
        of, cells = scenario(*FREE, *POLICIES[policy]), CELLS
    else:
        changes = [each for each in SKETCH if "features" not in each]
        of, cells = fs.preset("tiny", [*PLAIN, *changes, *FREE, *own, "policy.V=inf"]), 2
    dataset = load_dataset("synthetic", samples=600)
    simulated = devices_of(fs.simulate(of, SEED, out=tmp_path / "simulated"))
    grid = LocalGrid()
    for device in range(DEVICES):
        answer = ReplayedDevice(of, SEED, device, dataset, None).answer
        grid.add(100 + device, {"partition-id": device}, answer)
    serve(strategy_for(of, dataset, SEED, out=tmp_path / "run"), grid, None)
    deployed = devices_of(fs.read(tmp_path / "run"))
    for column in ("scheduled", "transmitted", "stored", "fresh"):
        assert deployed[column].to_list() == simulated[column].to_list(), column
    np.testing.assert_allclose(deployed["importance"], simulated["importance"], rtol=1e-12)
    counted = np.array(deployed["fresh_labels"].to_list())
    assert counted.shape[1] == cells
    np.testing.assert_array_equal(1024 * counted, simulated["fresh_features"].to_list())
    assert deployed["transmitted"].any()
    report = fs.verify(tmp_path / "run")
    assert report.ok, str(report)
    again = ask_again(tmp_path / "run")  # from the tables alone, reference mix included
    assert again.ok, str(again)


def counting(features: bool, **options: Any) -> Any:
    """A client that reports two samples more in each round, in cells by what the server has settled, or by label."""

    def answer(context: Context, message: Message) -> Message | None:
        settled = fitted(context, message)
        if not features:
            return client(growing)(context, message)
        images: Any = load_dataset("synthetic", samples=600).train_images
        drawn = np.random.default_rng(context.node_id).permutation(600)
        rows = images[drawn[: 2 * round_of(message)]].reshape(-1, images[0].size)
        cells = in_cells(rows / 255.0, settled) if settled else np.eye(3)[np.zeros(len(rows), int)]
        device = Device(context, message, features=cells, f_hz=1.2e9, beta=1.0, meter=None, **options)
        return device.answer(message.content.array_records.get("arrays"), gain=1.0)

    return answer


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_an_app_counts_by_what_comes_with_questions(epsilon: float | None, tmp_path: Path) -> None:
    grid = grid_of(*[counting(True, epsilon=epsilon) for _ in range(3)])
    ScheduledFedAvg(scenario(*FAST[:1], "policy.V=inf"), out=tmp_path / "run", wait_s=0.0).start(
        grid, model(), num_rounds=5
    )
    sent = [message for message in grid.sent if message.metadata.message_type == "train"]
    assert sent
    assert not any(FITTED in message.content for message in sent)  # it was sent once, before
    counted = devices_of(fs.read(tmp_path / "run")).filter(pl.col("stored") > 0)["fresh_labels"].to_list()
    assert counted
    assert {len(counts) for counts in counted} == {CELLS}
    report = fs.verify(tmp_path / "run")
    assert report.ok, str(report)


def test_a_node_that_lost_its_state_trains_again_when_it_is_next_called(tmp_path: Path) -> None:
    """Its failed turn is charged; the call after it brings what the server has settled, question or not."""
    well = counting(True)

    def forgets(context: Context, message: Message) -> Message | None:
        if round_of(message) == 3 and message.metadata.message_type == "train":
            context.state.clear()
        try:
            return well(context, message)
        except DeviceError as problem:
            return Message(Error(2, str(problem)), reply_to=message)  # as a node of Flower does

    strategy = ScheduledFedAvg(
        scenario(*FAST[:1], "policy.name=select_all"), out=tmp_path / "run", wait_s=0.0, max_report_age=100
    )
    strategy.start(grid_of(forgets, well, well), model(), num_rounds=6)
    turns = devices_of(fs.read(tmp_path / "run")).filter(pl.col("scheduled") & (pl.col("device") == 0))
    assert turns.filter(~pl.col("transmitted"))["round"].to_list() == [3]
    assert turns["round"].max() > 3  # type: ignore[operator]


@pytest.mark.parametrize("wants_cells", [True, False])
def test_who_counts_another_thing_is_told_so(wants_cells: bool, caplog: pytest.LogCaptureFixture) -> None:
    """By the helper on the client; and by the server, where a client has one of its own."""
    of = scenario(*FAST[:1]) if wants_cells else fs.preset("tiny", [*FAST, f"system.devices={DEVICES}"])
    why = "the server counts features" if wants_cells else "the server counts labels"
    strategy = ScheduledFedAvg(of, classes=3, wait_s=0.0)
    with pytest.raises(DeviceError, match=why):
        strategy.start(grid_of(counting(not wants_cells)), model(), num_rounds=1)

    record = {"name": "0", "stored-labels": [1] * (3 if wants_cells else CELLS), "f-hz": 1.2e9, "beta": 1.0}
    report = ConfigRecord({**record, **({} if wants_cells else {"features": True})})
    answers = [lambda context, message: Message(RecordDict({REPORT: report}), reply_to=message)]
    with pytest.raises(fs.FeelstreamError, match=r"it counts (labels|features), and this run counts"):
        ScheduledFedAvg(of, classes=3, wait_s=0.0).start(grid_of(*answers), model(), num_rounds=1)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[0.5, 0.5, 0.0]], "a single 1 among zeros"),
        ([[1.0, 1.0, 0.0]], "a single 1 among zeros"),
        ([[1.0, 0.0]], "of 3 numbers"),
        ([1.0, 0.0, 0.0], "a row per sample"),
        ([[np.nan, 0.0, 1.0]], "a single 1 among zeros"),
    ],
)
def test_rows_that_are_no_cells_are_refused(rows: Any, why: str) -> None:
    with pytest.raises(DeviceError, match=why):
        Device(at_node(), told(features=1), features=rows)
    assert Device(at_node(), told(features=1), features=[]).stored_labels.tolist() == [0, 0, 0]


def test_a_node_that_has_lost_what_is_settled_says_so_until_it_is_asked() -> None:
    node, called, asked = at_node(), told(features=1), told(features=1)
    asked.content[FITTED] = packed({"edges": np.array([1.0, 2.0])})
    with pytest.raises(DeviceError, match="has lost what the server has settled"):
        fitted(node, called)
    for message in (asked, called):
        assert fitted(node, message)["edges"].tolist() == [1.0, 2.0]
    assert fitted(at_node(), told()) == {}  # where labels are counted


def test_what_is_settled_survives_the_wire() -> None:
    settled = {"centres": np.arange(6.0).reshape(2, 3), "inner": {"n": np.array(True)}, "none": np.zeros((0, 4))}
    found = unpacked(packed(settled))
    assert found.keys() == settled.keys()
    np.testing.assert_array_equal(found["centres"], settled["centres"])
    assert found["inner"]["n"] == 1
    assert found["none"].shape == (0, 4)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (["data.features.kind=outputs", "learning.engine=auto"], "data.features.kind: 'outputs' depends on the model"),
        (["data.features.noise=1.0"], "data.features: noise and every are for simulations"),
    ],
)
def test_what_only_a_simulation_can_is_refused(changes: list[str], why: str) -> None:
    with pytest.raises(fs.FeelstreamError, match=why):
        ScheduledFedAvg(fs.preset("tiny", changes))
