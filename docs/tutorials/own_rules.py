# %% [markdown]
# # Your own policy, metric and arrivals
#
# You are meant to replace three parts of the simulation: who is scheduled, what makes data important, and when data arrives. Each is a
# small class or function. Here they are defined in the notebook. In a file, use them by name, such as
# `--set policy.name=my_policy.py:Rested` ([details](../extending.md)).
#
# ## A policy
#
# Settings are fields of the class and are checked when set. `select` sees an *observation*, arrays with one entry per device, and
# returns a *decision*. What it needs to remember goes through `update` as arrays, so a killed run can resume exactly where it was.

# %%
import numpy as np
from pydantic import Field

import feelstream as fs


class Rested(fs.Policy):
    """The feasible devices with the most fresh samples among those that have rested."""

    rest: int = Field(
        default=2, ge=0, description="rounds that a device rests after its turn; ≥ 0"
    )

    def init(self, system):
        return {"last": np.full(system.devices, -(10**9))}

    def select(self, state, observation, rng):
        plan = observation.plan(self.size)
        rested = np.flatnonzero(
            plan.feasible & (observation.round - state["last"] > self.rest)
        )
        shuffled = rng.permutation(
            rested
        )  # ties are broken at random, never by device number
        most_fresh_first = shuffled[np.argsort(-observation.fresh[shuffled], kind="stable")]
        return fs.Decision(np.sort(most_fresh_first[: self.size]), plan)

    def update(self, state, outcome):
        last = state["last"].copy()
        last[outcome.schedule] = outcome.round
        return {"last": last}


tiny = fs.preset("tiny")
run = fs.simulate(tiny.with_(policy=Rested(size=2, rest=3)))
run.summary()

# %% [markdown]
# Did every device rest? The trace shows the fewest rounds between two turns of one device:

# %%
import polars as pl

run.devices.filter("scheduled").sort("round").select(
    pl.col("round").diff().over("device").min()
)

# %% [markdown]
# `check` plays short awkward runs with a policy and says which promises it keeps. On the command line it is
# `feelstream check my_policy.py:Rested`.

# %%
from feelstream.testing import check

for result in check(Rested()):
    print("pass" if result.ok else "FAIL", result.meaning)

# %% [markdown]
# A policy that breaks the contract gets an error. This one schedules devices whether or not they are feasible:


# %%
class FirstTwo(fs.Policy):
    def select(self, state, observation, rng):
        return fs.Decision(np.arange(self.size), observation.plan(self.size))


print(*[result.problem for result in check(FirstTwo()) if not result.ok], sep="\n")

# %% [markdown]
# ## A metric
#
# The importance of a device's fresh data is a function of two arrays: its amount, and its dissimilarity from the data used so far. The
# paper adds the two; here a device needs both. You name a metric by its file, so that the trace records which one was used.

# %%
from pathlib import Path

Path("my_metric.py").write_text("""
def product(amount, dissimilarity):
    return amount * (1 + dissimilarity)
""")
for metric in ["combined", "my_metric.py:product"]:
    run = fs.simulate(tiny.with_(metric=metric, V=10.0))
    print(f"{metric:22} accuracy {run.rounds['accuracy'][-1]:.3f}")

# %% [markdown]
# ## Arrivals
#
# An arrival process says how many samples each device gets in a round. Here samples arrive by day and not by night, and every device has
# its own time zone.

# %%
from feelstream.data.streaming.arrivals import EndlessArrivals


class Daily(EndlessArrivals):
    """Poisson(rate) samples a round in the first half of a device's day, none in the second."""

    rate: float = Field(
        5.0, gt=0, le=1e6, description="mean samples per device and round by day; above 0"
    )
    day: int = Field(default=24, ge=2, description="rounds of a day; ≥ 2")

    def init(self, devices, rng):
        return rng.integers(0, self.day, devices)  # the hour of each device at the start

    def counts(self, round, state, devices, rng):
        by_day = (state + round) % self.day < self.day / 2
        return np.where(by_day, rng.poisson(self.rate, devices), 0), state


run = fs.simulate(tiny.with_(arrivals=Daily(day=8), rounds=16))
run.devices.pivot("device", index="round", values="stored").head(8)

# %% [markdown]
# Stored samples grow for four rounds, stay the same for four, and so on.
