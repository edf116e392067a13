"""Comparisons and sweeps from Python."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from builders import small
from matplotlib.figure import Figure

import feelstream as fs
from feelstream.errors import RunError
from feelstream.experiment import load


class Largest(fs.Policy):
    """The devices that hold the most."""

    def select(self, state, observation, rng):
        plan = observation.plan(self.size)
        ids = np.flatnonzero(plan.feasible)
        return fs.Decision(ids[np.argsort(-observation.stored[ids], kind="stable")][: self.size], plan)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def test_policies_by_name_object_and_scenario(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    entries = ["lyapunov(V=0.2)", fs.preset("tiny").policy, small("policy.name=random")]
    found = fs.compare(entries, small(), seeds=2, out=tmp_path, executor=threads)
    assert found.arms == ["lyapunov(V=0.2)", "lyapunov(V=0.05,size=2)", "random"]
    assert found.failures == []
    assert found.results.plan.arm("lyapunov(V=0.2)").scenario == small("policy.V=0.2")
    assert repr(found) == f"Comparison(3 configurations, 2 seeds, in {tmp_path})"
    summary = found.summary(long=True)
    energy = summary.filter(arm="random", quantity="energy_j").row(0, named=True)
    alone = [fs.simulate(small("policy.name=random"), seed).rounds["energy_mean_cum_j"][-1] for seed in (0, 1)]
    assert energy["mean"] == pytest.approx(np.mean(alone))
    assert found.run("random", 1).rounds.equals(fs.simulate(small("policy.name=random"), 1).rounds)
    assert found.table(["energy_j"])["arm"].to_list() == found.arms
    assert load(tmp_path).plan == found.results.plan  # the same files as the command line's


def test_labels_of_ones_own_and_fields_for_all(threads: ThreadPoolExecutor) -> None:
    arms = {"ours": "lyapunov", "theirs": small("policy.name=random")}
    found = fs.compare(arms, small(), seeds=[7], executor=threads, rounds=3)
    assert found.arms == ["ours", "theirs"]
    assert {arm.scenario.system.rounds for arm in found.results.plan.arms} == {3}
    assert found.results.plan.seeds == (7,)


def test_a_report_stays_when_the_runs_do_not(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = fs.compare(["random"], small(), seeds=1, executor=threads)
    page, place = found.report(), found.directory
    del found
    assert not place.exists()
    assert page == Path("results/compare/report.html")
    assert page.exists()
    kept = fs.compare(["random"], small(), seeds=1, executor=threads, out=tmp_path / "kept")
    assert kept.report() == tmp_path / "kept" / "report.html"


def test_a_policy_of_the_script_has_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    run = fs.simulate(small(), rounds=2)
    monkeypatch.setattr(type(run.scenario.policy), "plugin_name", lambda self: "__main__:Mine")
    assert repr(run).startswith("Run(Mine, seed 0, ")


def test_a_sweep_is_a_grid(threads: ThreadPoolExecutor) -> None:
    found = fs.sweep(small(), {"V": [0.01, 0.1], "system.devices": [5, 6]}, seeds=1, executor=threads)
    assert found.arms == [
        "lyapunov V=0.01 system.devices=5",
        "lyapunov V=0.01 system.devices=6",
        "lyapunov V=0.1 system.devices=5",
        "lyapunov V=0.1 system.devices=6",
    ]
    assert found.results.plan.arms[2].scenario == small("policy.V=0.1", "system.devices=5")
    own = fs.sweep(
        small(), V=[0.01, 0.1], policies={"mine": "lyapunov", "by chance": "random"}, seeds=1, executor=threads
    )
    assert own.arms == ["mine V=0.01", "mine V=0.1", "by chance"]  # labels as those of compare
    with pytest.raises(RunError, match=r"no configurations differ in policy\.size alone; those that do: .*policy\.V"):
        found.plot(against="policy.size")
    axes = found.plot(against="policy.V").axes
    assert [axis.get_xlabel() for axis in axes] == ["V"]
    means = [line for line in axes[0].lines if line.get_marker() not in (".", "_", "None")]
    assert [np.size(line.get_xdata()) for line in means] == [2, 2]  # two lines of two values each
    assert found.plot().axes[0].get_xlabel() == "V"  # what was swept, first of all
    assert found.plot("energy_mean_cum_j").axes[0].get_xlabel() == "Round"


def test_below_five_seeds_every_seed_is_drawn(threads: ThreadPoolExecutor) -> None:
    few = fs.compare(["lyapunov", "random"], small(), seeds=2, executor=threads).plot().axes[0]
    many = fs.compare(["lyapunov", "random"], small(), seeds=5, executor=threads).plot().axes[0]
    assert (len(few.collections), len(many.collections)) == (0, 2)  # bands
    thin = [line for line in few.lines if line.get_linewidth() < 1 and np.size(line.get_xdata()) > 2]
    assert len(thin) == 4


def test_a_plot_goes_into_axes_of_ones_own_and_keeps_the_users_settings(threads: ThreadPoolExecutor) -> None:
    found = fs.compare(["lyapunov", "random"], small(), seeds=2, executor=threads)
    figure = Figure()
    axes = figure.subplots()
    assert found.plot(ax=axes) is figure
    assert axes.get_xlabel() == "Round"
    assert found.plot(figsize=(5, 4)).get_size_inches().tolist() == [5, 4]
    ours = found.plot().axes[0].xaxis.label.get_fontsize()
    with mpl.rc_context({"axes.labelsize": 15.0}):
        assert found.plot().axes[0].xaxis.label.get_fontsize() == 15.0
        assert found.run("random", 0).plot("transmitted").axes[0].xaxis.label.get_fontsize() == 15.0
    assert found.plot(style={"axes.labelsize": 11.0}).axes[0].xaxis.label.get_fontsize() == 11.0
    assert found.plot().axes[0].xaxis.label.get_fontsize() == ours


def test_counts_have_whole_numbers_on_their_axis_and_a_far_budget_crushes_nothing(threads: ThreadPoolExecutor) -> None:
    run = fs.compare(["random"], small("system.energy_budget_j=1e-6"), seeds=1, executor=threads).run("random", 0)
    counts = run.plot("transmitted").axes[0]
    assert all(float(tick).is_integer() for tick in counts.get_yticks())
    figure = run.plot("energy_mean_cum_j")
    (energy,), (legend,) = figure.axes, figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["budget: 0.001 mJ, off the axis"]
    assert energy.get_ylim()[0] > 0.001


def test_tables_for_papers(threads: ThreadPoolExecutor, tmp_path: Path) -> None:
    found = fs.compare(["lyapunov", "greedy_energy"], "tiny", seeds=5, engine="none", executor=threads)
    text = found.to_latex(tmp_path / "t.tex", ["energy_j"])
    assert (tmp_path / "t.tex").read_text() == text
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("\\")] == [
        r"\begin{tabular}{lr}", r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    (own,) = [line for line in lines if line.startswith("greedy")]
    assert own.startswith(r"greedy\_energy & $")
    assert own.endswith(r"^{+}$ \\")  # far less energy, with every seed
    assert found.to_csv(quantities=["energy_j"]) == found.table(["energy_j"]).write_csv()
    assert found.table(["energy_j"])["energy_j_verdict"].to_list() == [None, "lower"]
    with pytest.raises(RunError, match="cannot write"):
        found.to_csv(tmp_path / "nowhere" / "t.csv")


@pytest.mark.slow
def test_pictures_and_the_page_of_a_notebook(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    found = fs.compare(["lyapunov", "random"], small("learning.engine=native"), seeds=2, executor=threads)
    axes = found.plot().axes
    assert [axis.get_ylabel() for axis in axes] == ["Test accuracy (%)", "Energy per device\n(mJ per round)"]
    with pytest.raises(RunError, match="did you mean 'accuracy'"):
        found.plot("accurcy")
    page = found._repr_html_()
    assert "accuracy, last fifth, %" in page
    assert "data:image/png;base64," in page
    assert found.report(tmp_path).is_file()


def test_a_policy_of_ones_own_runs_in_threads(threads: ThreadPoolExecutor) -> None:
    found = fs.compare([Largest(size=1), "random"], small(), seeds=1, executor=threads)
    assert found.arms == ["Largest(size=1)", "random"]
    assert found.failures == []


def test_the_table_and_the_curves_hold_accuracy(threads: ThreadPoolExecutor) -> None:
    found = fs.compare(["lyapunov", "random"], "tiny", seeds=1, rounds=5, executor=threads)
    columns = ["late_accuracy", "energy_j", "energy_over_budget"]
    assert found.table().columns[::4] == ["arm", *(f"{column}_verdict" for column in columns)]
    picture = found.plot()
    assert picture._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]  # what a notebook asks for


def test_progress_in_a_notebook_is_one_line_that_is_replaced(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, line: dict[str, str], raw: bool) -> None:
            assert raw
            shown[-1] = line["text/plain"]

    def display(line: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        shown.append(line["text/plain"])
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))  # type: ignore[arg-type]
    monkeypatch.setattr("feelstream.terminal.progress._in_notebook", lambda: True)
    fs.simulate(small(), progress=True)
    fs.compare(["random"], small(), seeds=2, executor=ThreadPoolExecutor(1), progress=True)
    assert len(shown) == 2
    assert "2/2 runs, " in shown[1]
    assert capsys.readouterr().err == ""


def test_a_scenario_shows_itself_in_a_notebook() -> None:
    assert "<td>energy_budget_j</td><td>0.08</td>" in fs.preset("tiny")._repr_html_()


# Configurations may be called anything: what reads like a number or a formula is stored, drawn and read as it is.
NAMES = ["inf", r"\inf", "$V=10^$", "$V=10$", "_mine", "a_b 50 %"]


@pytest.mark.slow
def test_odd_names_come_back_and_are_drawn(tmp_path: Path) -> None:
    fields = {"learning.engine": "none", "system.rounds": 2}
    policies = dict.fromkeys(NAMES, "random")
    found = fs.compare(policies, "tiny", seeds=1, workers=1, out=tmp_path / "found", **fields)
    assert found.table()["arm"].to_list() == NAMES
    again = fs.compare(policies, "tiny", seeds=1, workers=1, out=tmp_path / "found", **fields)
    assert again.table().equals(found.table())
    figure = found.plot("energy_mean_cum_j")
    figure.savefig(tmp_path / "figure.png")
    legend = figure.legends[0] if figure.legends else figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text().strip().replace(r"\$", "$") for text in legend.get_texts()][: len(NAMES)] == NAMES
