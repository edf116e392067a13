"""The sentences of the multiverse page that do not come from numbers."""

AFTER = """\
A schedule is a choice of eligible devices, fresh data, width of arrivals and number of rounds; a specification is one
choice of every setting, in the order of the table below. How those in the last column do on untouched seeds: [what the
search ended with](reproduction.md#what-the-search-ended-with). [The explorer](explorer.html) shows every claim and
curve.
"""

ABOUT = """\
The paper can be read in several ways and leaves numbers open. A result that holds under one reading alone is a result
about that reading. So we try its claims over many readings and settings: a multiverse analysis (Steegen, Tuerlinckx,
Gelman and Vanpaemel, Perspectives on Psychological Science 11, 2016), searched as a race that drops the unlikely ones
early (Maron and Moore, Artificial Intelligence Review 11, 1997). A search for what fits always finds something, if only
by chance. So the finalists are judged on other seeds, in [the reproduction](reproduction.md), and nothing on this page
is evidence for or against the paper by itself.
"""

REGISTERED = """\
`cyclic` and the six values next to it are readings of the order of digits, of empty data, of arrival times beyond the
run and of |S_k|, one at a time. `settling`, `classic`, `long` and `short` are kinds of local training; `classic` is
that of PyTorch's example (momentum 0.5, learning rate 0.01, batches of 64) without its dropout, which the compiled
engine lacks. The set, the seeds ({first} to {last}, used only in this search) and every rule below are in
`src/feelstream/studies/hu2023/multiverse/registration.toml`, which was committed before the first run. It had one
mistake, the name of the field for the order of digits. We fixed that after the first runs without learning, which do
not read it, and before any with learning. All specifications of a seed share its world. With learning, T · steps is at
most {steps} and T is at most {rounds}. The four specifications of [the reproduction](reproduction.md) are not in the
race, since they are confirmed separately.
"""

ENERGY = """\
Every combination of eligible devices, fresh data, σ and T gets {first} seeds on i.i.d. data. A schedule is dropped as
impossible if a published saving lies outside the 99 % prediction interval of one run, or if the 99 % interval of the
mean saving is not above 0 anywhere. The others get {last} seeds, with 3 digits per device as well. They are kept if
each of the four mean savings is above 0 beyond chance (95 %) and each published one lies in its 95 % prediction
interval.
"""

SAVINGS_FIGURE = """\
![Energy saved by rounds](figures/multiverse-savings.png)

*Energy saved against random on i.i.d. data.* Marks show schedules that are kept, or possible so far. Shades show 95 %
intervals of the mean, with the spread pooled over schedules with the same T.
"""

RACE = """\
Waves of {wave} specifications race, each wave as far apart in its settings as the kept schedules allow, through
{stages} seeds. In each figure, a specification is dropped as impossible if the 99 % upper limit of any lead is below 0,
or below minus the margin of 2 percentage points where the claim is to be as good. Of the others, the {second} most
likely go on to the second stage and {third} to the third. P is the smallest P(effect > −margin) over the leads of a
figure's claims, so the probability that all of its claims hold is at most P.
"""

MIXED = """\
The effect of each lead is modelled as μ + settings + (eligible × fresh × σ) + specification + seed + rest, all but μ
drawn from normal distributions whose variances are estimated by restricted maximum likelihood; P is that of the best
linear unbiased prediction, which draws a specification with few seeds towards others with its settings. On simulated
data with known truth, its 95 % intervals held the truth in about nine cases of ten, so a P near 0 or 1 is somewhat too
confident.
"""

EARLIER = """\
Earlier versions of this page judged 29 specifications on the three seeds that the presets were judged with too. They
called a saving reproduced even if it was not shown to be above 0, and named settings that a claim *needs* by a rule
that chance often meets. Those runs are not evidence and are no longer shown; [the
reproduction](reproduction.md#how-these-settings-were-chosen) says what they led to.
"""
