"""The texts of docs/silicon.md that no number decides."""

OPENING = """\
Policies that save energy do so by computing slowly: they wait for rounds in which a device's CPU happens to be slow, or
slow it down themselves. Under the paper's law, λ c f², that is worth a factor of thousands; on a real core the energy
of a cycle follows the square of its voltage, and no core can lower that very far ([energy laws](energy-laws.md)). Here
every policy runs under both.
"""

SETTING = """\
What is compared: energy per update that arrived, over the whole run, against `random` with the same seed under the same
law. Cores are at discrete operating points, with no leakage. Unless a column says "own range", devices have the
scenario's frequencies, 20 MHz to 1.52 GHz, so with one seed all laws see the same CPUs, channels and arrivals; with its
own range a core runs between its lowest and its highest point. So that only the shape of a law differs, budgets grow
with its mean energy, weights in J² with the square of it, and prices per joule shrink with it; the energy of the radio
stays what it is. "Left" is the saving over that under the cubic law. The scenario's budget is 3 % of what `random`
spends (1.5 % in `stress`). Over a whole run it pays 4.3 of the cheapest turns under the cubic law, and on the three
cores 0.07, 0.08 and 0.14 of one, computing alone. So no policy that trains can keep it there, and those that never
exceed it, `balanced_joint` and `myopic_energy`, train nobody; [a budget that pays as many turns as under the cubic
law](within-budget.md#what-of-it-is-the-policy) is another comparison.
"""

HOW = """\
## How to read it

Values are means over seeds ± half of the 95 % t interval of the paired saving. A pair of policies differs where its
paired t-test says so at 5 % after Holm's correction over all pairs of a law; `a → b` means that `a` was the cheaper one
under the cubic law and `b` is under this one, both by that test. A model is trained only where accuracy is shown; the
other runs schedule, compute and send without learning, on which energies and schedules do not depend. `oort`,
`power_of_choice`, `update_norm` and `gradient_norm`, which go by a model, are left out. All numbers are in
[silicon.csv](silicon.csv).
"""
