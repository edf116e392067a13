"""The texts of docs/within-budget-results.md that no number decides."""

OPENING = """\
The paper gives every device 0.5 mJ a round. Its own policy, with two or four devices a round, cannot keep that: a turn
at the frequency that a device happens to have costs 650 times as much on average. `balanced_joint` ([the rule and its
proof](within-budget.md)) slows CPUs down, shares the band, rations each device's budget over the run, and chooses
devices so that the classes are balanced. Rounds that cannot be balanced pass without training. The server averages over
the latest update of every device, and hands out a running average of its model; with that server, training everyone
ends no higher than with FedAvg ([tables](#all-policies)). [With longer steps of the
server](within-budget-longer.md) the same schedules end higher, and so does everyone; that page also has this server on
other seeds.
"""

SETTING = """\
In the picture and in the tables:

- `select_all` trains all devices that fit a round together: nearly all of them, but about a third in `stress`.
- `size=K` leaves the number of devices in a round to the budget.
- "With memory" is the server update `{kind = "smoothed", inner = {kind = "remembered"}}`
  ([both](learning.md#the-servers-update)): it averages over the latest update of every device, and a running average of
  the model is what is tested and kept. That costs devices nothing. "With smoothing" is the second without the first.
  All others have FedAvg.
- `pace=running` knows no horizon. `knows=sizes` tells the server how much data each device holds, and not which labels.
- `fashion-3digit` is `paper-3digit` with Fashion-MNIST.
- The worst device is the one whose mean energy over budget is greatest in a run; the mean over seeds hides which single
  one was nearest to its budget. "Over" is the share of devices above their budget.
"""

LONGER_STEPS = """\
"With longer steps" is the server update `{kind = "smoothed", inner = {kind = "limited", inner = {kind = "remembered",
server_learning_rate = 1.4}}}` ([all three](learning.md#the-servers-update)): the server that
[the other page](within-budget-results.md) is about, stepping 1.4 times as far, where updates that are far longer than
late ones are cut. Schedules and energy are the same. `select_all` trains all devices that fit a round together: nearly
all of them, but about a third in `stress`. "With memory" is the server of the other page; all others have FedAvg.
"""

SAME_SERVER = """\
A server that steps further helps whoever trains. So like for like, this is the gap in points, with its 95 % interval,
to training everyone with the very same server. The margins below are about training everyone with FedAvg, as the paper
does.
"""

HOW = """\
## How to read it

Values are means over seeds ± half of the 95 % t interval; a gap is that of accuracy to `select_all` with the same seed,
in percentage points. Two margins were fixed before any of these runs: 1 point for the accuracy of the last fifth of the
rounds, 2 points for the mean over the whole run. "Within" says that a one-sided paired t-test rejects a larger loss at
5 %, after Holm's correction over all scenarios and both margins of a policy; "not shown" says no more than that it does
not. The settings of `balanced_joint` were chosen on seeds 100 to 105 and, before that, 1000 to 1004
([how, and what else was tried](within-budget-history.md)). Which seeds are played, and in which
order, was fixed before any of these runs, too. Policies that a table does not name have not been played with these
seeds. All numbers are in [within-budget.csv](within-budget.csv).
"""
