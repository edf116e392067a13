"""Attack feelstream for a given time and print what was tried, survived and lost.

python -m soak --seconds 60                    all attacks, in turns
python -m soak --only damage,kills --seconds 600 --seed 7
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from time import monotonic

from soak.attack import Attack
from soak.damage import Damage
from soak.inputs import Inputs
from soak.policies import Policies
from soak.processes import Kills, Signals
from soak.scenarios import Scenarios

FUZZ: tuple[type[Attack], ...] = (Scenarios, Damage, Inputs, Policies)  # within this process
SOAK: tuple[type[Attack], ...] = (*FUZZ, Kills, Signals)


def main() -> None:
    known = {attack.name: attack for attack in SOAK}
    options = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0, help="how long, all attacks together")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default=",".join(known), help=f"some of {','.join(known)}")
    options.add_argument("--json", type=Path, help="write the counts to this file too")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="feelstream-soak-") as place:
        attacks = [known[name](Path(place) / name, random.Random(given.seed)) for name in given.only.split(",")]
        end = monotonic() + given.seconds
        while monotonic() < end:
            attack = min(attacks, key=lambda each: each.spent_s)  # each gets the same share of the time
            attack.try_once()
    print(f"{'attack':<12}{'tried':>9}{'survived':>10}{'refused':>9}{'lost':>6}")
    for attack in attacks:
        print(f"{attack.name:<12}{attack.tried:>9}{attack.survived:>10}{attack.refused:>9}{len(attack.lost):>6}")
    for attack in attacks:
        for loss in attack.lost[:20]:
            print(f"lost, {attack.name}: {loss}")
    if given.json:
        counts = {each.name: [each.tried, each.survived, each.refused, each.lost] for each in attacks}
        given.json.write_text(json.dumps(counts, indent=2) + "\n")
    sys.exit(any(attack.lost for attack in attacks))


if __name__ == "__main__":
    main()
