"""Settings that are wrong by themselves or do not go together: one sentence each, which begins with the field.

Numbers outside of their range are in test_ranges.py; slips of the pen, as commands tell them, in tests/cli/test_cli.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import small

import feelstream as fs
from feelstream.errors import ScenarioError
from feelstream.run import Change

VOLTAGE = "cpu.energy.kind=voltage"


def classes(*tables: str) -> str:
    return f"devices.classes=[{', '.join(f'{{{table}}}' for table in tables)}]"


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (
        ("system.queue=signed", "policy.name=lyapunov_joint"),
        "system.queue: must be from_zero for the policy lyapunov_j",
    ),
    ((VOLTAGE,), "cpu.profile: every device must have one under cpu.energy.kind = voltage"),
    (("cpu.profile=rk3399-a72",), "cpu.profile: changes nothing under cpu.energy.kind = cubic"),
    (("cpu.frequency_hz=profile",), "cpu.frequency_hz: profile is a range only where there is one; set cpu.profile"),
    (
        ('devices.classes=[{share=1.0,frequency_hz="profile"}]',),
        "cpu.frequency_hz: profile is a range only where there is one; set cpu.profile, or the profile of the class",
    ),
    ((VOLTAGE, "cpu.profile=rk3399-a73"), "cpu.profile: 'rk3399-a73' is not known; did you mean"),
    ((VOLTAGE, "cpu.profile=rk3308-a35"), r"cpu.frequency_hz: must be at most 1.008e\+09"),
    ((VOLTAGE, "cpu.profile=none.toml"), "cpu.profile: cannot read none.toml"),
    ((VOLTAGE, "cpu.energy.points=some", "cpu.profile=rk3399-a72"), "cpu.energy.points: must be 'interpolated' or"),
    (("radio.block_bits=0.1",), "radio.block_bits: an update may have at most 1,000,000 blocks"),
    (("radio.fading=none", "world.channel.kind=ar1"), "world.channel.kind: must be independent"),
    (("world.channel.kind=tr38901",), "world.channel.kind: .* such as tr38901, and static does not"),
    (("mobility=tr38901(carrier_ghz=60.0,place=rma)",), ".*carrier_ghz: must be at most 30 in rma"),
    (("mobility=tr38901(radius_m=6000.0,place=uma)",), ".*radius_m: must be at most 5000 in uma"),
    (("mobility=tr38901(place=inh)",), "world.mobility.place: must be 'umi', 'uma' or 'rma'"),
    ((classes("share=0.5"),), "devices.classes: their shares must add up to 1, not 0.5"),
    ((classes("share=1, frequency_hz=[2, 1]"),), r"devices.classes.*frequency_hz: must be \[lowest, highest\]"),
    ((classes("share=1, colour=1"),), "devices.classes.*colour: there is no such field"),
    ((classes("share=1, priority='high'"),), "devices.classes.*priority.*: must be a number"),
    ((classes("share=1, priority=0.0"),), "devices.classes.*priority.*: must be"),
    (("data.partition.kind=natural",), "data.partition.kind: natural needs a data set that tells who"),
    (("data.arrivals.kind=recorded",), "data.arrivals.kind: recorded needs a data set that tells when"),
    (("arrivals=recorded(speed=fast)",), "data.arrivals.speed: must be"),
    (("arrivals=recorded(start=late)",), "data.arrivals.start: must be"),
    (("data.arrivals.order=alphabetical",), "data.arrivals.order: must be"),
    (("partition=digits(per_device=2.0)",), "data.partition.per_device: must be a whole number"),
    (("partition=digits(per_device=50)",), "data.partition.per_device = 50 .* needs 300 samples"),
    (("partition=minority(labels=['8'])",), r"data.partition.labels\[0\]: must be a whole number"),
    (("partition=minority(labels=[8, 10])",), "data.partition.labels: label 10 is not in the"),
    (("partition=minority(share=0.01)",), "data.partition.share = .* is 0 devices"),
    (("partition=minority(share=0.99)",), "data.partition.share = .* is 6 devices"),
    (("partition=minority", "data.samples=6"), "data.partition.labels.*no samples of them"),
    ((f"partition=minority(labels={list(range(10))})",), "data.partition.labels.*only samples of them"),
    (("buffer=reservoir(capacity=true)",), "data.buffer.capacity: must be a whole number"),
    (("arrivals=poisson(rate='5')",), "data.arrivals.rate: must be a number"),
    (("learning.local.nesterov=true",), "learning.local.nesterov: must be false where momentum = 0"),
    (("learning.local.keep=momentum",), "learning.local.keep: must not be momentum where momentum = 0"),
    (("local=sgd(keep=scaffold,prox=0.1)",), "learning.local.keep: scaffold goes with plain SGD"),
    (("learning.local.schedule=line",), "learning.local.schedule: must be 'constant', 'step', 'cosine' or 'inverse'"),
    (("cpu.cycles=auto", "learning.local.epochs=1"), "cpu.cycles: auto needs learning.local with a number of steps"),
    (("radio.update_bits=autoo",), "radio.update_bits: must be a number or 'auto', not 'autoo'$"),
    (("server=gaussian(noise=1.0)",), "learning.server.noise: needs clip"),
    (
        ("learning.engine=native", "server=inverse_probability"),
        "learning.server.kind: inverse_probability needs a policy that knows",
    ),
    (('evaluators=["test", "strem"]',), "learning.evaluators.*'strem' is not known; did you mean 'stream'"),
    (('evaluators=["test", "test"]',), "learning.evaluators.*each evaluator must be named once"),
    (('evaluators="test"',), "learning.evaluators.*must be a list"),
    (('evaluators=["nowhere.py:f"]',), "learning.evaluators.*there is no file"),
    *((((f"{field}=x\udcff"),), field) for field in ("data.dataset", "policy.name", "policy.metric", "policy.V")),
]


@pytest.mark.parametrize(("settings", "sentence"), REFUSED)
def test_what_is_refused(settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=f"^{sentence}") as caught:
        fs.simulate(small(*settings))
    assert "\n" not in str(caught.value)


ALL_THEIR_OWN = classes("share=0.5, energy_budget_j=0.02", "share=0.5, energy_budget_j=0.003")


@pytest.mark.parametrize(
    ("change", "sentence", "settings"),
    [
        ("9:policy.V=0.1", "policy.V: must change in a round from 1 to 8, not 9", ()),
        ("2:policy.V=-1", "policy.V: must be greater than 0, not -1", ()),
        ("2:policy.size=99", "policy.size: must be at most system.devices", ()),
        ("2:cpu.cycles=1", "cpu.cycles: cannot change during a run", ()),
        ("policy.V=1", "'policy.V=1' must read round:section.field=value", ()),
        ("2:policy.V=1", "policy.V: there is no such field in random", ("policy.name=random",)),
        (
            "2:energy_budget_j=1",
            r"system.energy_budget_j: cannot change here, since \[devices\] gives",
            (ALL_THEIR_OWN,),
        ),
        ("2:energy_budget_j=1", r"system.energy_budget_j: cannot change here", ("devices.table=devices.csv",)),
    ],
)
def test_what_cannot_change_during_a_run(
    change: str, sentence: str, settings: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("devices.csv").write_text("device,energy_budget_j\n" + "".join(f"{k},0.001\n" for k in range(6)))
    with pytest.raises(ScenarioError, match=f"^{sentence}"):
        fs.simulate(small(*settings), changes=[Change.parse(change)])
