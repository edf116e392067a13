# %% [markdown]
# # Choosing V for a budget
#
# The scheduler minimises $\sum_k (Q_k \tilde E_k - V I_k)$ in every round. The queue grows while a device spends more than its budget
# and falls while it rests:
#
# $$ Q_k(t+1) = \max\bigl(Q_k(t) + E_k(t) - E_k^{\mathrm{avg}},\; 0\bigr). $$
#
# A large $V$ takes important data at almost any price. A small one saves energy. What can you expect from a given $V$?
#
# ## The budget has to be possible
#
# With `cardinality="exact"`, as in the paper's figures, two devices train in every round, whatever they cost. `cap` schedules at most
# two, and none if no device is worth it. Only then can a budget be kept. Here it is 5 mJ per device and round, and data never stops
# arriving. Scheduling alone shows this, so `engine="none"` trains nothing.

# %%
import feelstream as fs

tiny = fs.preset("tiny").with_(
    engine="none", rounds=600, energy_budget_j=0.005, arrivals="poisson", level="rounds"
)
for cardinality in ["exact", "cap"]:
    run = fs.simulate(tiny.with_(cardinality=cardinality, V=0.01))
    print(f"{cardinality:6} {run.summary()['energy_over_budget'][0]:.2f} times the budget")

# %% [markdown]
# ## V against energy and importance
#
# This sweeps over $V$ with the same seeds:

# %%
values = [0.001, 0.01, 0.1, 1.0]
found = fs.sweep(tiny.with_(cardinality="cap"), {"V": values}, seeds=2)
found.plot("energy_mean_cum_j")

# %% [markdown]
# The mean energy starts high, because queues start at 0, and falls towards the budget. The larger $V$, the longer that takes: queues grow
# to about $V q^*$ before they curb spending, so the overspending after $T$ rounds is of order $V/T$. What does a larger $V$ buy?
# Importance:

# %%
import polars as pl

budget_j = tiny.system.energy_budget_j
trade = (
    found.rounds()
    .group_by("arm", maintain_order=True)
    .agg(
        energy_over_budget=pl.col("energy_mean_j").mean() / budget_j,
        importance=pl.col("importance_sum").mean(),
    )
)
trade

# %% [markdown]
# [The derivation](../derivation.md) proves both sides of this trade: the importance is within $C/V$ of the best that the budget allows, and
# the queues stay below a multiple of $V$.
#
# ## Picking one
#
# Decide how far above the budget a run of your length may end, and take the largest $V$ that stays below. Here the limit is a quarter
# above the budget after 600 rounds:

# %%
trade.filter(pl.col("energy_over_budget") <= 1.25).tail(1)

# %% [markdown]
# On the command line, `tune` does this for any policy with such a weight. It tries many weights, judges each by the upper end of the
# 95 % interval over seeds of what it spends, and plots the trade-off:
#
#     feelstream tune tiny --set cardinality=cap --set arrivals=poisson \
#         --set energy_budget_j=0.005 --budget 0.006 --horizon 600
