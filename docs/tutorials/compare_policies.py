# %% [markdown]
# # Comparing policies
#
# Every random draw is keyed by seed and purpose. Two policies with one seed therefore receive the same arrivals, CPU frequencies and
# channels, and their difference on that seed is due to the policies alone. `compare` runs policies × seeds and takes
# differences in pairs.

# %%
import feelstream as fs

found = fs.compare(
    ["lyapunov", "random", "greedy_energy"], "tiny", seeds=5, out="results/three"
)
found

# %% [markdown]
# `table` has one row per policy: accuracy over the last fifth of the run, mean accuracy over all rounds, and energy per device and round
# in joules.

# %%
found.table()

# %% [markdown]
# ## Is a difference real?
#
# `summary` has one row per policy and quantity: mean, 95 % interval over seeds, and the paired difference against the first policy with
# its own interval. An interval that holds 0 means that these seeds do not tell the two apart, and that is what one should write then.

# %%
import polars as pl

chosen = found.summary().filter(pl.col("quantity").is_in(["late_accuracy", "energy_j"]))
chosen.select(
    "arm", "quantity", "mean", "difference", "difference_low", "difference_high", "verdict"
)

# %% [markdown]
# ## Pictures

# %%
found.plot()

# %% [markdown]
# ## More seeds
#
# `out` keeps the runs. The same call with more seeds runs only the new ones, and a call that was interrupted goes on.

# %%
more = fs.compare(
    ["lyapunov", "random", "greedy_energy"], "tiny", seeds=6, out="results/three"
)
more.table(["energy_j"])

# %% [markdown]
# ## The same on the command line
#
#     feelstream compare tiny --policy lyapunov --policy random --policy greedy_energy --seeds 6 --out results/three
#
# also writes `report.html` with curves and maps. In Python that is `found.report()`.
#
# `tiny` is a toy, and its numbers mean nothing. The [leaderboard](../leaderboard.md) has all policies on real MNIST.
