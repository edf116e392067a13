"""The sentences of the multiverse page that do not come from numbers."""

ABOUT = """\
The paper can be read in several ways and leaves numbers open, and a result that holds under one reading alone is a
result about that reading. So its claims are tried over readings and settings: their *multiverse* (Steegen, Tuerlinckx,
Gelman and Vanpaemel, Perspectives on Psychological Science 11, 2016), searched as a *race* (Maron and Moore, Artificial
Intelligence Review 11, 1997). A search that looks for what fits will find something that fits, by chance if need be;
therefore what it ends with is judged on other seeds, in [the reproduction](reproduction.md), and nothing on this page
is evidence for or against the paper by itself.
"""

REGISTERED = """\
`cyclic` and the six values beside it are readings of the order of digits, of what no data counts as, of arrival times
beyond the run and of |S_k|, one at a time; `settling`, `classic` (momentum 0.5, learning rate 0.01, batches of 64, as
PyTorch's example has them, without its dropout, which the compiled engine does not have), `long` and `short` are local
training. The set, the seeds ({first} to {last}, of this search alone) and every rule below stand in
`src/feelstream/studies/hu2023/multiverse/registration.toml`, which was committed before the first run; one mistake in
it, the name of the field of the order of digits, was mended after the first runs without learning, which do not read
it, and before any with learning. All specifications of a seed share its world. With learning, T · steps is at most
{steps} and T at most {rounds}. The four specifications of [the reproduction](reproduction.md) are not in the race,
since they are confirmed by themselves.
"""

ENERGY = """\
Every combination of eligible devices, fresh data, σ and T has {first} seeds on i.i.d. data. A schedule is dropped as
impossible where a published saving lies outside the 99 % prediction interval of one run, or where the 99 % interval of
the mean saving is not above 0 anywhere. The others have {last} seeds, with 3 digits per device as well, and are kept
where each of the four mean savings is above 0 beyond chance (95 %) and each published one lies in its 95 % prediction
interval.
"""

SAVINGS_FIGURE = """\
![Energy saved by rounds](figures/multiverse-savings.png)

*Energy saved against random on i.i.d. data.* Marks: schedules that are kept, or possible so far; shades: 95 % intervals
of the mean, with the spread pooled over schedules with the same T.
"""

RACE = """\
Waves of {wave} specifications race, each wave as far apart in its settings as the kept schedules allow, through
{stages} seeds. In each figure, a specification is dropped as impossible where the 99 % upper limit of any lead is below
0, or below minus the margin of 2 percentage points where the claim is to be as good; of the others the {second} most
likely go on to the second stage and {third} to the third. P is the least of P(effect > −margin) over the leads of a
figure's claims, so the chance that all of its claims hold is at most that.
"""

MIXED = """\
The effect of each lead is modelled as μ + settings + (eligible × fresh × σ) + specification + seed + rest, all but μ
drawn from normal distributions whose variances are estimated by restricted maximum likelihood; P is that of the best
linear unbiased prediction, which draws a specification with few seeds towards what others with its settings have. On
simulated data with known truth its 95 % intervals held the truth in about nine cases of ten, so a P near 0 or 1 is
somewhat too sure of itself.
"""

EARLIER = """\
Earlier versions of this page judged 29 specifications on three seeds that the presets were judged with too, called a
saving reproduced even where none above 0 was shown, and named settings that a claim *needs* by a rule that chance often
meets. Those runs are no evidence and are no longer shown; what they led to is told in [the
reproduction](reproduction.md#how-these-settings-were-chosen).
"""
