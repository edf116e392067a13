"""The sentences of the reproduction page that do not come from numbers."""

NAMES = {"literal": "literal (`literal-*`)", "fitted": "fitted (`paper-*`)"}
FRESH = {"per_round": "arrived in this round", "since_use": "arrived since last use"}

INTRODUCTION = """\
The paper is C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, [arXiv:2305.01238](https://arxiv.org/abs/2305.01238). This page compares two specifications of what it
leaves open, each under both readings of fresh data: the paper defines B_k(t) as the "newly arrived data set after the
previous time instant", which is per round, and motivates its metric by what arrived "since the last model pull". Seeds
are 2000 to 2019; nothing that is tested on them was chosen on them. Each line has as many of them as have been run so
far, and the command below makes the rest.
"""

OTHER_SEEDS = """\
T = 25 was fitted to the published savings, and so were T and σ of the fitted presets: savings near 16 and 35 % are no
outcome. On 40 other seeds, 4000 to 4039, the literal settings save 14.0 ± 4.4 % (n = 2) and 36.5 ± 2.3 % (n = 4) on
i.i.d. data, 11.6 ± 4.9 % and 36.6 ± 2.4 % with 3 digits per device; the fitted ones 22.1 ± 3.6 % and 32.3 ± 1.9 %, and
21.2 ± 3.5 % and 31.8 ± 1.8 %. Energies do not depend on learning, so this makes the former; without `--presets`, the
latter:

    feelstream reproduce fig1 --presets literal --seeds 40 --seed-start 4000 --set learning.engine=none
"""

EARLIER = """\
An earlier version of this page used the fitted presets (since last use) with twenty other seeds, 0 to 19, in runs of
2026-11-16: 40 % of random's slots, and 1 % of the proposed policy's, went to devices without data. Averaged over the
four comparisons of figure 1, the lead in accuracy over the run was +12.9 percentage points when read literally, and
−1.5 when neither policy may schedule such devices. The energy saving remained: 29 % (n = 2) and 39 % (n = 4).
"""

HISTORY = """\
If settings are chosen after seeing a result, that result is no longer a test. So this is the order of our choices.

1. The first version had `fresh = per_round`. We chose T = 40 and σ = 0.03 T so that both energy savings come close to
   the published 16 and 35 %; savings under these settings are fits, not evidence. We chose 20 steps of 32 samples with
   learning rate 0.02 so that accuracy settles within the run.
2. We replaced `per_round` by `fresh = since_use` after seeing accuracy under both. So no claim about accuracy under the
   fitted presets (`paper-*`) is an untouched test, whatever earlier versions of this page said.
3. The first [multiverse](multiverse.md) judged 32 readings, times values of unstated settings, on three seeds that the
   tests of the presets shared. The presets met the most claims in it, 16 of 20; by the same rule they met 13 on twenty
   seeds. Its part with learning was a description, not evidence: the only specification that met all of figure 2 there
   failed on other seeds. The search that replaced it has its set, rules and seeds registered.
4. The paper's source labels the panels of truncated-normal arrivals `dist8` and that of uniform ones `dist0`, which
   suggests σ = T/8, and σ = ∞ for uniform. d = 21,840 is the number of parameters of PyTorch's classic MNIST example,
   which trains with learning rate 0.01, momentum 0.5 and batches of 64. So the literal specification (`literal-*`) uses
   the paper's definition of fresh data, every device eligible, σ = T/8 and that training, with 24 steps, which pass
   once over the 1,500 samples that a device holds in the end. Only T = 25 rounds (100 s) is fitted, to the savings.
   Before we fixed it, we had looked at σ = T/8 and T = 25 with 50 steps of 32 and learning rate 0.02 on four other
   seeds. The example's dropout is left out, because the compiled engine has none; `examples/dropout_cnn.py` has it.
5. We fixed the literal specification, the claims below, the margin of 2 percentage points and the seeds before looking
   at any result on these seeds, and changed none of them afterwards. We looked at results as seeds finished; how many
   seeds a specification has so far depends only on computing time.
"""

READINGS = """\
Three more readings are not settings. The noise N0 = 1e−13 W may be the total power instead of a density: the savings
stay the same to a fraction of a point. A device's data may count as used when it receives the model or when its update
arrives: with the paper's numbers no device is dropped in between, so the runs are the same. The algorithm box omits the
max that the queue's equation has: over seeds 0 to 19, i.i.d., that lowers the literal savings from 19 to 12 % (n = 2)
and from 37 to 36 % (n = 4), and the fitted ones by one and two points. We follow the equation.
"""

OPEN = """\
**What the paper leaves open.** It does not state T, σ, the steps, the learning rate or the batch. We use Rayleigh
fading and do not discount the surrogate rate. [The model](model.md) gives the sentence of the paper behind each
reading.

**What follows from the paper's own numbers.** Computing takes about a hundred times the energy of sending. No choice of
two or four devices a round keeps the budget of 0.5 mJ at the frequencies they happen to have. So the queues grow
without bound, and the policy balances them rather than bounding them; `lyapunov_joint`, which may slow devices down,
keeps the budget. The admission phase drops about one device in 100 000; the `stress` preset exercises it.
"""
