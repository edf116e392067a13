"""Each rule on a few devices, worked out by hand; and the lots that break ties."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from builders import alike, observe
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from feelstream.policies import POLICIES, Random
from feelstream.policies.base import Observation, Outcome, Policy, State
from feelstream.policies.ranking import lowest

SMALL = alike(4, rounds=10)
GHZ = np.array([0.4, 1.0, 0.8, 1.2]) * 1e9


def policy(name: str, **fields: Any) -> Any:
    return POLICIES.lookup(name)(**fields)


def see(round: int = 1, **known: Any) -> Observation:
    return observe(SMALL, round, **known)


def choose(rule: Policy, state: State, observation: Observation, seed: int = 0) -> list[int]:
    return rule.select(state, observation, np.random.default_rng(seed)).schedule.tolist()


def holding(labels: Any, round: int = 1) -> Observation:
    """Devices with these samples by class."""
    stored = np.array(labels, np.int32)
    return see(round, stored_features=stored, stored=stored.sum(axis=1))


def outcome(round: int, schedule: list[int], **found: Any) -> Outcome:
    n = len(schedule)
    usual: dict[str, Any] = {
        "transmitted": np.ones(n, bool),
        "gain": np.ones(n),
        "energy_j": np.zeros(n),
        "losses": None,
        "observation": see(round),
    }
    return Outcome(round=round, schedule=np.array(schedule, np.int64), **usual | found)


def test_round_robin_walks_the_circle_past_the_infeasible() -> None:
    rule = policy("round_robin")
    available = np.array([1, 0, 1, 1], bool)
    for order, turns in (([0, 1, 2, 3], ([0, 2], [0, 3], [2, 3], [0, 2])), ([2, 0, 3, 1], ([0, 2], [2, 3], [0, 3]))):
        state: State = {"next": np.array(0), "order": np.array(order)}
        for turn, expected in enumerate(turns, start=1):
            assert choose(rule, state, see(turn, available=available)) == expected
            state = rule.update(state, outcome(turn, expected))


def test_the_circle_of_round_robin_is_drawn_at_random() -> None:
    rule = policy("round_robin", size=1)
    states = [rule.start(SMALL, np.random.default_rng(seed)) for seed in range(40)]
    assert {choose(rule, state, see())[0] for state in states} == {0, 1, 2, 3}


def test_proportional_fair_divides_the_last_gain_by_the_service() -> None:
    """w = 2. After devices 0 (gain 4), 1 (1), 2 (2), 3 (8) had one turn each: served 0.5 g · 2^-(rounds since)."""
    rule = policy("proportional_fair", size=1, window=2)
    state = rule.init(SMALL)
    for turn, gain in enumerate([4.0, 1.0, 2.0, 8.0]):
        state = rule.update(state, outcome(turn + 1, [turn], gain=np.array([gain])))
    assert state["served"] == pytest.approx([4 / 16, 1 / 8, 2 / 4, 8 / 2])
    decision = rule.select(state, see(5), np.random.default_rng(0))
    assert decision.score == pytest.approx([-16, -8, -4, -2])
    assert decision.schedule.tolist() == [0]
    # A refused device was seen, but not served: 0.5 against 0.125 stored, its ratio falls to 4.
    state = rule.update(state, outcome(5, [0], gain=np.array([0.5]), transmitted=np.array([False])))
    assert -rule.select(state, see(6), np.random.default_rng(0)).score == pytest.approx([4, 16, 8, 4])
    # One that failed was not seen at all: its gain stays, and its service halves once more.
    state = rule.update(state, outcome(6, [1], gain=np.zeros(1), transmitted=np.array([False])))
    assert -rule.select(state, see(7), np.random.default_rng(0)).score == pytest.approx([8, 32, 16, 8])


def test_best_channel_by_last_gain() -> None:
    last = policy("best_channel", gain="last")
    state = last.update(last.init(SMALL), outcome(1, [1, 0], gain=np.array([0.1, 9.0])))
    assert choose(last, state, see(2, beta=np.array([0.5, 2.0, 1.0, 1.5]))) == [0, 3]
    failed = last.update(state, outcome(2, [0, 3], gain=np.zeros(2), transmitted=np.zeros(2, bool)))
    assert choose(last, failed, see(3, beta=np.array([0.5, 2.0, 1.0, 1.5]))) == [0, 3]  # nothing was seen of them


CLASSES = np.array([[3, 0, 0], [0, 3, 0], [1, 1, 1], [0, 0, 9]], np.int32)
FRESH = {"fresh": CLASSES.sum(axis=1), "fresh_features": CLASSES, "used_features": np.array([10, 0, 0])}
ORACLE = {"oracle_gain": np.array([0.4, 3.0, 0.1, 2.0]), "beta": np.array([0.1, 2.0, 1.0, 0.5])}


@pytest.mark.parametrize(
    ("name", "fields", "known", "expected"),
    [
        # Computing costs λ c f²: 0.064, 0.4, 0.256, 0.576 J; sending to β = 1e-9 costs device 0 far more.
        ("greedy_energy", {}, {"f_hz": GHZ}, [0, 2]),
        ("greedy_energy", {}, {"f_hz": GHZ, "beta": np.array([1e-9, 1.0, 1.0, 1.0])}, [1, 2]),
        ("best_channel", {}, {"beta": np.array([0.5, 2.0, 1.0, 1.5])}, [1, 3]),
        # Gains over means: 4, 1.5, 0.1, 4.
        ("best_channel", {"gain": "oracle"}, ORACLE, [1, 3]),
        ("proportional_fair", {"gain": "oracle"}, ORACLE, [0, 3]),
        ("importance_greedy", {"metric": "amount", "size": 1}, FRESH, [3]),
        # Dissimilar to X = (10, 0, 0): devices 1 and 3 (1.5 each: ‖x−y‖² = 18 over 12), then 2 (1), then 0 (0).
        ("importance_greedy", {"metric": "dissimilarity"}, FRESH, [1, 3]),
        # Costs ≈ 0, 0.004, 0.008, 2 with 0.4 J to compute, against a worth of 0.05·2·5/11.
        ("ocean", {"size": 4}, {"queue_j": np.array([0.0, 0.01, 0.02, 5.0])}, [0, 1, 2]),
    ],
)
def test_the_best_by_the_rule_are_chosen(
    name: str, fields: dict[str, Any], known: dict[str, Any], expected: list[int]
) -> None:
    rule = policy(name, **fields)
    assert ("oracle_gain" in rule.needs) == ("oracle_gain" in known)
    assert choose(rule, rule.init(SMALL), see(5, **known)) == expected


def test_age_prefers_who_waited_longest() -> None:
    rule = policy("age")
    state = rule.init(SMALL)
    for turn, schedule in enumerate([[0, 1], [2, 3], [0, 2]]):
        state = rule.update(state, outcome(turn + 1, schedule))
    decision = rule.select(state, see(4), np.random.default_rng(0))
    assert decision.score.tolist() == [-1, -3, -1, -2]
    assert decision.schedule.tolist() == [1, 3]


def test_fedcs_and_select_all_pack_the_fastest_that_fit() -> None:
    """After computing 3.0, 3.6, 3.5 and 3.67 s are left; which sets are on time is found by trying all of them."""
    slow = replace(SMALL, update_bits=SMALL.update_bits * 4.5)
    times = [slow.surrogate_time_s(n) for n in (1, 2, 3, 4)]
    left = 4.0 - 4e8 / GHZ
    expected = max(
        (set_ for n in (1, 2, 3, 4) for set_ in combinations(range(4), n) if all(left[list(set_)] >= times[n - 1])),
        key=len,
    )
    assert expected == (1, 2, 3)  # four would not be on time, and no other three are
    seen = observe(slow, 1, f_hz=GHZ)
    everyone = policy("select_all").select({}, seen, np.random.default_rng(0))
    assert (everyone.schedule.tolist(), everyone.plan.n) == ([1, 2, 3], 3)
    packed = policy("fedcs", size=2, share=1.0).select({}, seen, np.random.default_rng(0))
    assert (packed.schedule.tolist(), packed.plan.n) == ([1, 3], 2)


def test_power_of_choice_takes_the_worst_known_loss() -> None:
    rule = policy("power_of_choice", candidates=4)
    losses = np.array([[[0.2, 0.4]], [[2.0, 1.0]], [[9.0, 9.0]]], np.float32)
    found = outcome(1, [0, 1, 2], losses=losses, transmitted=np.array([True, True, False]))
    state = rule.update(rule.init(SMALL), found)
    assert state["loss"] == pytest.approx([0.3, 1.5, 0, 0])  # device 2 was not heard
    assert choose(rule, state, see(2)) == [2, 3]  # unknown losses come first
    state = rule.update(state, outcome(2, [2, 3], losses=np.full((2, 1, 2), 1.0, np.float32)))
    assert choose(rule, state, see(3), seed=1)[0] == 1
    assert 0 not in choose(rule, state, see(3))


def test_power_of_choice_draws_candidates_by_size() -> None:
    """Of two candidates among |S| = 1, 1, 1, 97 the big one is nearly always one."""
    rule = policy("power_of_choice", size=1, candidates=1)
    stored = np.array([1, 1, 1, 97])
    picks = [choose(rule, rule.init(SMALL), see(stored=stored), seed)[0] for seed in range(400)]
    assert np.mean(np.array(picks) == 3) == pytest.approx(0.97, abs=0.03)


def test_oort_scores_by_hand() -> None:
    """Losses 1, 2, 3 (rms); round 10; last heard in rounds 2, 4, 8; device 3 unknown; all of one speed."""
    rule = policy("oort", prefer=1.0)
    state = rule.init(SMALL)
    for turn, device, loss in ((2, 0, 1.0), (4, 1, 2.0), (8, 2, 3.0)):
        state = rule.update(state, outcome(turn, [device], losses=np.full((1, 2, 2), loss, np.float32)))
    scores = rule.scores(state, 10, np.ones(4))
    low, clip = 0.999, 2.9  # 0.999 × the least, and the 95 % quantile of 1, 2, 3
    wait = np.sqrt(0.1 * np.log(10) / np.array([2, 4, 8]))
    assert scores[:3] == pytest.approx((np.array([1, 2, 2.9]) - low) / (clip - low) + wait)


def test_oort_counts_the_samples_that_a_device_trained_on() -> None:
    """Six draws from 3, 100 and 0 samples at a loss of 2: utilities 3·2, 6·2 and 0, all three known."""
    rule, seen = policy("oort"), see(stored=np.array([3, 100, 0, 5]))
    losses = np.full((3, 2, 3), 2.0, np.float32)
    losses[2] = np.nan  # nothing to train on
    state = rule.update(rule.init(SMALL), outcome(1, [0, 1, 2], losses=losses, observation=seen))
    assert state["utility"].tolist() == [6.0, 12.0, 0.0, 0.0]
    assert state["known"].tolist() == [True, True, True, False]


def test_fedcs_asks_its_share_and_oort_likes_the_fast() -> None:
    pairs = {tuple(choose(policy("fedcs", size=1, share=0.5), {}, see(f_hz=GHZ), seed)) for seed in range(60)}
    assert pairs == {(3,), (1,), (2,)}  # the slowest never wins a pair
    crowd = observe(alike(100), 1, f_hz=np.full(100, 1e9))
    asked = np.random.default_rng(0).choice(100, 7, replace=False)  # 7 % of a hundred, as the policy draws them
    assert set(choose(policy("fedcs", size=1, share=0.07), {}, crowd)) <= {int(asked.min())}
    seen = see(f_hz=GHZ)
    time_s = 4e8 / GHZ + seen.plan(2).transmit_time_s
    for alpha in (0.0, 2.0):
        speed = policy("oort", prefer=0.0, alpha=alpha).speed(seen, seen.plan(2))
        assert speed == pytest.approx((time_s[3] / time_s) ** alpha)
    assert (policy("oort", prefer=0.0, alpha=1e100).speed(seen, seen.plan(2)) > 0).all()


def test_ocean_weights_have_mean_one() -> None:
    for eta, sign in (("ascending", 1), ("uniform", 0), ("descending", -1)):
        weights = [policy("ocean", V=1.0, eta=eta).weight(t, 10) for t in range(1, 11)]
        assert np.mean(weights) == pytest.approx(1)
        assert (np.sign(np.diff(weights)) == sign).all()
    assert policy("ocean").weight(5, 10) == pytest.approx(0.05 * 10 / 11)


def test_myopic_energy_waits_until_it_can_pay() -> None:
    """Computing costs 0.064 J at 0.4 GHz; at 5 mJ a round, devices that all cost that much can pay in round 13."""
    rule = policy("myopic_energy", size=4)
    state, cost = rule.init(SMALL), see(f_hz=np.full(4, 4e8)).plan(4).energy_j[0]
    first = int(np.ceil(cost / 5e-3))
    assert choose(rule, state, see(first - 1, f_hz=np.full(4, 4e8))) == []
    assert choose(rule, state, see(first, f_hz=np.full(4, 4e8))) == [0, 1, 2, 3]
    state = rule.update(state, outcome(first, [0, 2], energy_j=np.full(2, cost)))
    assert choose(rule, state, see(first + 1, f_hz=np.full(4, 4e8))) == [1, 3]
    static = policy("myopic_energy", budget="static")
    assert choose(static, static.init(SMALL), see(500, f_hz=np.full(4, 4e8))) == []


LABELS = [[6, 0], [0, 6], [5, 1], [0, 0]]  # of everyone: 11 of one class, 7 of the other


def test_fedcgd_stops_where_one_more_device_makes_the_set_no_better() -> None:
    """Alone device 2 is nearest to everyone's mix (5/6 against 11/18), then 1 helps more than 0; all are exact."""
    assert choose(policy("fedcgd", size=2, variance=0.0), {}, holding(LABELS)) == [1, 2]
    assert choose(policy("fedcgd", size=4, variance=0.0), {}, holding(LABELS)) == [0, 1, 2]
    same = holding([[3, 3]] * 4)
    assert len(choose(policy("fedcgd", size=3, variance=0.0), {}, same)) == 1  # its mix is right already
    assert len(choose(policy("fedcgd", size=3, variance=9.0), {}, same)) == 3  # more samples, less variance


def test_fedteddi_brings_what_has_changed() -> None:
    rule = policy("fedteddi", size=1, drift=10.0)
    state = rule.init(SMALL)
    state = rule.update(state, outcome(1, [0, 1, 2, 3], observation=holding([[4, 4, 0]] * 4)))
    moved = holding([[4, 4, 0], [4, 4, 0], [0, 4, 4], [4, 4, 0]], 2)
    assert choose(rule, state, moved) == [2]
    assert choose(policy("fedteddi", size=1, drift=0.0), state, moved) != [2]
    lost = outcome(2, [2], transmitted=np.zeros(1, bool), observation=moved)
    assert rule.update(state, lost)["seen"].tolist() == state["seen"].tolist()  # the model has not seen it


def test_fedbacys_takes_turns_by_groups_of_what_is_left() -> None:
    rule = policy("fedbacys", size=1, groups=2)
    state = rule.start(SMALL, np.random.default_rng(0))
    assert np.bincount(state["group"]).tolist() == [2, 2]
    state = state | {"group": np.array([0, 0, 1, 1])}
    stored = np.array([3, 3, 3, 3])
    first = choose(rule, state, see(1, stored=stored))
    assert first[0] in (0, 1)
    state = rule.update(state, outcome(1, first, energy_j=np.array([0.5])))
    second = choose(rule, state, see(2, stored=stored))
    assert second[0] in (2, 3)
    state = rule.update(state, outcome(2, second, energy_j=np.array([0.2])))
    idle = sorted(set(range(4)) - {first[0], second[0]})
    assert sorted(np.flatnonzero(state["group"] == 0).tolist()) == idle  # who spent nothing has the most left
    assert choose(rule, state, see(3, stored=np.zeros(4, int))) == []


def test_representative_covers_all_kinds_and_lets_turns_even_out() -> None:
    rule = policy("representative", size=2)
    labels = [[9, 0, 0], [8, 0, 0], [0, 5, 0], [0, 7, 0]]
    chosen = choose(rule, rule.init(SMALL), holding(labels))
    assert len({k // 2 for k in chosen}) == 2  # one of each kind
    state, turns = rule.init(SMALL), np.zeros(4)
    for t in range(1, 41):
        chosen = choose(rule, state, holding(labels, t), seed=t)
        state = rule.update(state, outcome(t, chosen))
        turns[chosen] += 1
    assert np.abs(turns - 20).max() <= 2


def test_ocean_under_power_control_takes_the_prefix_of_greatest_value() -> None:
    """Against every prefix of its own order, each at a split found by brute force over a grid."""
    rng = np.random.default_rng(5)
    rule = policy("ocean", V=0.02, size=2, eta="uniform")
    for _ in range(20):
        f_hz, beta, queue_j = rng.uniform(3e8, 1.2e9, 4), rng.uniform(0.3, 2, 4), rng.uniform(0.01, 0.2, 4)
        seen = see(3, f_hz=f_hz, beta=beta, queue_j=queue_j)
        at_half = [float(weighed(seen, k, np.array(0.5))) for k in range(4)]
        i, j = np.argsort(at_half)[:2].tolist()
        share = np.linspace(0.01, 0.99, 9801)
        one = 0.02 - weighed(seen, i, np.array(1.0))
        two = 0.04 - (weighed(seen, i, share) + weighed(seen, j, 1 - share)).min()
        expected = [] if max(one, two) <= 0 else [i] if one >= two else sorted([i, j])
        assert choose(rule, {}, seen) == expected


def weighed(seen: Observation, k: int, share: np.ndarray) -> np.ndarray:
    """Q (E_cmp + E_tr) at a share of the band, sending for all the time that is left."""
    a, left_s = SMALL.update_bits * np.log(2) / SMALL.bandwidth_hz, SMALL.round_s - seen.compute_time_s[k]
    kappa_w = SMALL.bandwidth_hz * SMALL.noise_w_per_hz / seen.beta[k]
    return seen.queue_j[k] * (seen.compute_energy_j[k] + left_s * kappa_w * share * np.expm1(a / (share * left_s)))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 50, 3000]), st.integers(0, 40), st.integers(1, 400))
def test_lowest_agrees_with_sorting(seed: int, devices: int, n: int, values: int) -> None:
    """Few distinct values make ties; a share of candidates of 0 to 1 makes the guess of the cut fail, too."""
    rng = np.random.default_rng(seed)
    score = rng.integers(0, values, devices).astype(float)
    candidates = rng.random(devices) < rng.random() ** 2
    chosen = lowest(score, candidates, n, rng)
    assert candidates[chosen].all()
    assert len(np.unique(chosen)) == len(chosen) == min(n, candidates.sum())
    assert np.array_equal(np.sort(score[chosen]), np.sort(score[candidates])[:n])


def test_ties_are_broken_by_lot_and_infinite_scores_are_scores() -> None:
    rng = np.random.default_rng(0)
    assert 7 in lowest(np.where(np.arange(500) == 7, -np.inf, np.inf), np.ones(500, bool), 3, rng)
    picks = np.array([lowest(np.zeros(1000), np.ones(1000, bool), 2, rng) for _ in range(4000)])
    counts = np.bincount(picks.ravel(), minlength=1000)
    assert counts.max() < 30  # 8 each on average
    assert np.abs(np.corrcoef(np.arange(1000), counts)[0, 1]) < 0.1


def test_random_draws_every_set_of_feasible_devices_as_often() -> None:
    rng, seen = np.random.default_rng(1), observe(alike(6), 1, available=np.array([1, 0, 1, 1, 1, 1], bool))
    drawn = Counter(tuple(Random(size=2).select({}, seen, rng).schedule.tolist()) for _ in range(3000))
    assert set(drawn) == set(combinations([0, 2, 3, 4, 5], 2))
    assert chisquare(list(drawn.values())).pvalue > 1e-3
    for able in (0, 1, 3):
        assert choose(Random(size=4), {}, observe(alike(6), 1, available=np.arange(6) < able)) == list(range(able))
