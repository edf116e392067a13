# %% [markdown]
# # The first run
#
# A scenario describes everything about a run: the number of devices and rounds, the CPU and radio model, the data and how it arrives,
# the scheduling policy, and the model to train. `tiny` comes with the package and takes a second.

# %%
import feelstream as fs

scenario = fs.preset("tiny")
print(scenario.policy)
print(scenario.system)

# %% [markdown]
# `simulate` runs it. The same seed gives the same bytes, on any number of cores.

# %%
run = fs.simulate(scenario, seed=0)
run

# %% [markdown]
# ## What happened, round by round
#
# `run.rounds` has one row per round. Energies are in joules, averaged over all devices, including those that rested.
# `energy_mean_cum_j` is the average over the rounds so far; compare it with the budget.

# %%
run.rounds.select(
    "round", "feasible", "scheduled", "transmitted", "energy_mean_cum_j", "accuracy"
)

# %% [markdown]
# The energy stays within the budget of 80 mJ per device and round. The paper's budget is 0.5 mJ, and with its constants no schedule of
# exactly two devices a round can keep that. [Choosing V for a budget](tune_v.md) shows what keeps a budget.
#
# ## Who was scheduled, and why
#
# `run.devices` has one row per device and round, with everything that the decision was based on. The policy picked the two feasible
# devices with the lowest score
#
# $$ \text{score}_k = Q_k \tilde E_k - V I_k . $$

# %%
import polars as pl

third = run.devices.filter(pl.col("round") == 3).sort("score", nulls_last=True)
third.select("device", "f_hz", "fresh", "queue_j", "importance", "score", "scheduled")

# %% [markdown]
# A device without a score (`null`) was not feasible: its CPU was too slow to compute and transmit within the round.
#
# Where did the energy go? Almost all of it into computing:

# %%
run.devices.select(pl.col("e_cmp_j", "e_tr_j").sum())

# %% [markdown]
# ## Save and check it
#
# You can save a run in a directory. `verify` then recomputes every value from the files alone, with code that shares no formula with the
# simulator.

# %%
run.save("runs/first")
print(fs.verify("runs/first"))

# %% [markdown]
# ## The trained model
#
# The run includes the model after the last round.

# %%
model = run.model()
model

# %% [markdown]
# ## Another policy
#
# `with_` changes fields by name and checks them.

# %%
fs.simulate(scenario.with_(policy="random"), seed=0).summary()

# %% [markdown]
# One run of each policy says little. [The next tutorial](compare_policies.md) compares policies properly.
