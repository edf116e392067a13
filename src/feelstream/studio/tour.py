"""A guided tour in five steps over a race in the paper's setting: data arrives, queues, score, deadline, result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from nicegui import ui

from feelstream.run.explaining.sentences import shown_as
from feelstream.studio.lanes import Lane, scenario_at
from feelstream.studio.panels import heading, panel
from feelstream.studio.session import Session, first_draft
from feelstream.studio.views import RoundView

Lanes = Sequence[tuple[Lane, RoundView]]


@dataclass(frozen=True)
class Step:
    """One stop: the part of the race at which it is looked at, what to look at, and what to say there."""

    title: str
    part: float  # of the race's rounds
    where: str  # a CSS selector of what is framed
    words: Callable[[Lanes], str]

    def round(self, rounds: int) -> int:
        return max(1, round(self.part * rounds))


def _arrivals(lanes: Lanes) -> str:
    devices = _devices(lanes[0][1])
    holding, fresh = np.count_nonzero(devices["stored"]), int(devices["fresh"].sum())
    return (
        f"Each of {len(devices['stored'])} devices collects data while the model learns. By now {holding} of them hold "
        f"any, and {fresh} samples are fresh, newly arrived. On the map a large disc is what a device stores, the "
        "small one in it what is fresh. Which device is worth a turn therefore changes from round to round."
    )


def _queues(lanes: Lanes) -> str:
    lane, view = lanes[0]
    devices = _devices(view)
    longest = int(np.argmax(devices["queue_j"]))
    waiting = shown_as("queue_j", float(devices["queue_j"][longest]))
    return (
        f"A device may spend {shown_as('queue_j', _budget_j(lane, view))} a round on average. What it spends beyond "
        "that waits in its virtual queue Q, which falls by the budget in each round of rest. The colour shows it: "
        f"device {devices['device'][longest]} has the longest, {waiting}. A long queue makes the next turn "
        "of this device expensive."
    )


def _score(lanes: Lanes) -> str:
    chosen = _devices(lanes[0][1])["device"][lanes[0][1].chosen].tolist()
    took = " and ".join(map(str, chosen)) or "nobody"
    return (
        "lyapunov takes the devices with the least Q·E − V·I: energy E weighed by the queue, against the importance I "
        "of the fresh data, its amount and how unlike it is to the data used so far. The bars show the terms of the "
        f"best candidates, the dashed line the cut-off. Here it took {took}; the sentence under its name says what "
        "decided. random looks at none of this."
    )


def _deadline(lanes: Lanes) -> str:
    lane, view = lanes[0]
    late = sum(row["scheduled"] - row["transmitted"] for row in lane.rows[: view.round])
    return (
        f"A round lasts {lane.scenario.system.round_s:g} s. Whoever cannot compute and send in that time is no "
        f"candidate: {view.row['feasible']} of {view.all_devices} devices can in this round, the others are faint on "
        "the map. The channel is known only after training, so an update may still be too late; so far "
        f"{late or 'none'} {'was' if late == 1 else 'were'} (a dashed ring)."
    )


def _result(lanes: Lanes) -> str:
    found = []
    for lane, view in lanes:
        accuracy = view.row.get("accuracy")
        learned = "" if accuracy is None else f"{shown_as('accuracy', accuracy)} accuracy at "
        spent = shown_as("energy_mean_cum_j", view.row["energy_mean_cum_j"])
        found.append(f"{lane.label}: {learned}{spent} a device and round")
    over = all(view.row["energy_mean_cum_j"] > _budget_j(lane, view) for lane, view in lanes)
    exceed = f" All exceed the budget of {shown_as('queue_j', _budget_j(*lanes[0]))}." if over else ""
    return (
        f"{'; '.join(found)}.{exceed} Same world, same draws, other devices: the curves compare them round by round. "
        "Now ask “What if …” with another V and see what changes, or start a new race."
    )


def _budget_j(lane: Lane, view: RoundView) -> float:
    return float(np.mean(scenario_at(lane, view.round).system.energy_budget_j))


STEPS = (
    Step("Data arrives", 0.1, ".chart.map", _arrivals),
    Step("Queues remember energy", 0.3, ".chart.map", _queues),
    Step("The score decides", 0.3, ".chart.scores", _score),
    Step("The deadline", 0.5, ".chart.map", _deadline),
    Step("The result", 1.0, ".grid3", _result),
)


def _devices(view: RoundView) -> dict[str, np.ndarray]:
    assert view.devices is not None  # of a race that is played here
    return view.devices


class Tour:
    """A card over the page; the race jumps to where each step is looked at."""

    def __init__(self, session: Session) -> None:
        self.session, self.at = session, -1
        self._framed = False  # whether the present step has framed what it speaks of
        with panel("tour") as self.card:
            with ui.element("div").classes("head"):
                self.title = heading("")
                ui.space()
                ui.button(icon="close", on_click=self.end).props('flat dense round size=sm aria-label="End the tour"')
            self.words = ui.label().classes("why").props('aria-live="polite"')
            with ui.element("div").classes("actions"):
                self.back = ui.button("Back", on_click=lambda: self.go(self.at - 1)).props("flat dense")
                ui.space()
                self.next = ui.button("Next", on_click=lambda: self.go(self.at + 1)).props("dense")
        self.card.set_visibility(False)

    def begin(self) -> None:
        """From the first step, over the prepared race."""
        session = self.session
        session.draft, session.note = first_draft()
        session.begin(playing=False)
        self.go(0)

    def go(self, at: int) -> None:
        if not 0 <= at < len(STEPS):
            self.end()
            return
        self.at = at
        self.card.set_visibility(True)
        self.back.set_enabled(at > 0)
        self.next.set_text("Next" if at + 1 < len(STEPS) else "Done")
        self.title.clear()
        with self.title:
            ui.label(f"{at + 1} of {len(STEPS)}: {STEPS[at].title}").tag = "span"
        self._framed = False
        self._move()
        self.refresh()

    def end(self) -> None:
        self.at = -1
        self.card.set_visibility(False)
        self._frame("")

    def _move(self) -> None:
        race = self.session.race
        if race.ready:
            race.jump(STEPS[self.at].round(race.rounds))

    def _frame(self, where: str) -> None:
        ui.run_javascript(f"frame({where!r})")

    def refresh(self) -> None:
        """Say the step's words once its round is there."""
        race = self.session.race
        if self.at < 0 or race.problem:
            return
        step = STEPS[self.at]
        round = step.round(race.rounds)
        if race.ready and race.shown != round and not race.busy:
            self._move()
        if not race.ready or race.shown != round:
            self.words.set_text(f"Running up to round {round} …" if race.ready else "Preparing the race …")
            return
        if not self._framed:  # only now are the panels of this race there
            self._framed = True
            self._frame(step.where)
        self.words.set_text(step.words([(lane, lane.view(round)) for lane in race.lanes]))
