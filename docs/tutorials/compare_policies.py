# %% [markdown]
# # Comparing policies
#
# Every random draw is keyed by seed and purpose. With the same seed, two policies therefore meet the same arrivals, CPU frequencies and
# channels, and any difference between them is due to the policies alone. `compare` runs every policy with every seed and compares them
# in pairs.

# %%
import feelstream as fs

found = fs.compare(
    ["lyapunov", "random", "greedy_energy"], "tiny", seeds=5, out="results/three"
)
found

# %% [markdown]
# Here are the same numbers as a data frame, with both ends of every interval: accuracy over the last fifth of the run, energy per device
# and round in joules, and energy over budget.

# %%
found.table()

# %% [markdown]
# ## Is a difference real?
#
# `summary(long=True)` has one row per policy and quantity: the mean, its 95 % interval over seeds, and the paired difference from the first policy
# with its own interval. The verdict comes from a paired t-test with Holm's correction for the number of policies. It is stricter than a
# single interval: a difference whose interval excludes 0 may still be "unclear" among several.

# %%
import polars as pl

chosen = found.summary(long=True).filter(
    pl.col("quantity").is_in(["late_accuracy", "energy_j"])
)
chosen.select(
    "arm", "quantity", "mean", "difference", "difference_low", "difference_high", "verdict"
)

# %% [markdown]
# ## Pictures and tables for a paper
#
# `plot` draws any quantity by round, into your own axes if you pass `ax`. `to_latex` makes a booktabs table.

# %%
found.plot("queue_mean_j", figsize=(5, 3))

# %%
print(found.to_latex())

# %% [markdown]
# ## More seeds
#
# `out` stores the runs. The same call with more seeds makes only the new runs, and an interrupted call resumes where it stopped.

# %%
more = fs.compare(
    ["lyapunov", "random", "greedy_energy"], "tiny", seeds=6, out="results/three"
)
more.table(["energy_j"])

# %% [markdown]
# ## The same on the command line
#
#     feelstream compare tiny --policy lyapunov,random,greedy_energy \
#         --seeds 6 --out results/three
#
# also writes `report.html` with curves and maps. In Python that is `found.report()`.
#
# `tiny` is a toy: its numbers say nothing about real data. The [leaderboard](../leaderboard.md) compares all policies on real MNIST.
