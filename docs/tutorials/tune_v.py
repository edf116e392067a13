# %% [markdown]
# # Choosing V for a budget
#
# The scheduler minimises $\sum_k (Q_k \tilde E_k - V I_k)$ in every round. The queue grows while a device spends more than its budget
# and falls while it rests:
#
# $$ Q_k(t+1) = \max\bigl(Q_k(t) + E_k(t) - E_k^{\mathrm{avg}},\; 0\bigr). $$
#
# A large $V$ takes important data at almost any price. A small one saves energy. What can one expect of a given $V$?
#
# ## The budget has to be possible
#
# With `cardinality="exact"`, as in the paper's figures, two devices train in every round, whatever they cost. `cap` schedules at most two, and
# nobody if nobody is worth it. Only then can a budget be kept. Here it is 5 mJ per device and round, and data never stops arriving.
# Scheduling alone shows it; `engine="none"` trains nothing.

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
# A sweep over $V$, all with the same seeds:

# %%
values = [0.001, 0.01, 0.1, 1.0]
found = fs.sweep(tiny.with_(cardinality="cap"), {"V": values}, seeds=2)
found.plot("energy_mean_cum_j")

# %% [markdown]
# The mean energy starts high, since queues begin at 0, and falls towards the budget. The larger $V$, the later: queues grow to about $V q^*$ before
# they hold the spending back, so the overspending after $T$ rounds is of the order $V/T$. What does a larger $V$ buy? Importance:

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
# Decide how far above the budget a run of your length may be, and take the largest $V$ that stays below. Here, at most a quarter above after 600 rounds:

# %%
trade.filter(pl.col("energy_over_budget") <= 1.25).tail(1)

# %% [markdown]
# On the command line, `tune` does this for any policy with such a weight. It tries many weights, takes the upper end of the 95 % interval over seeds
# for what a weight spends, and draws the trade:
#
#     feelstream tune tiny --set cardinality=cap --set arrivals=poisson \
#         --set energy_budget_j=0.005 --budget 0.006 --horizon 600
