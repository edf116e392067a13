# %% [markdown]
# # Choosing V for a budget
#
# The scheduler minimises $\sum_k (Q_k \tilde E_k - V I_k)$ in every round. The queue grows while a device spends more than its budget
# and falls while it rests:
#
# $$ Q_k(t+1) = \max\bigl(Q_k(t) + E_k(t) - E_k^{\mathrm{avg}},\; 0\bigr). $$
#
# A large $V$ takes important data at almost any price. A small one saves energy. What does a given $V$ promise?
#
# ## The budget has to be possible
#
# With `cardinality="exact"`, as in the paper's figures, two devices train in every round, whatever they cost. `cap` schedules at most two, and
# nobody if nobody is worth it. Only then can a budget be kept. Scheduling alone shows it; `engine="none"` trains nothing.

# %%
import feelstream as fs

tiny = fs.preset("tiny").with_(engine="none", rounds=400, level="rounds")
for cardinality in ["exact", "cap"]:
    run = fs.simulate(tiny.with_(cardinality=cardinality, V=0.001))
    print(f"{cardinality:6} {run.summary()['energy_over_budget'][0]:8.2f} times the budget")

# %% [markdown]
# ## V against energy and importance
#
# A sweep over $V$, all with the same seeds:

# %%
values = [0.0001, 0.001, 0.01, 0.1]
found = fs.sweep(tiny.with_(cardinality="cap"), {"V": values}, seeds=2)
found.plot("energy_mean_cum_j")

# %% [markdown]
# All of them approach the budget, the dashed line, and a small $V$ gets there sooner: queues grow to about $V q^*$ before they hold the
# spending back, so the overspending is of the order $V/T$. What does the larger $V$ buy? Importance, in total over the run:

# %%
import polars as pl

found.rounds().group_by("arm", maintain_order=True).agg(
    energy_mj=pl.col("energy_mean_j").mean() * 1e3,
    importance=pl.col("importance_sum").mean(),
    queue_mj=pl.col("queue_mean_j").last() * 1e3,
)

# %% [markdown]
# [The derivation](../derivation.md) proves both sides of this trade: the importance is within $C/V$ of the best that the budget allows, and
# the queues stay below a multiple of $V$.
#
# ## Picking one
#
# Decide how far above the budget a run of your length may be, and take the largest $V$ that stays below:

# %%
tolerated = 1.1
budget = tiny.system.energy_budget_j
energy = found.rounds().group_by("arm", maintain_order=True).agg(pl.col("energy_mean_j").mean() / budget)
energy.filter(pl.col("energy_mean_j") <= tolerated).tail(1)
