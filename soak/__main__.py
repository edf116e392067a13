"""Attack feelstream for a given time and print what was tried, survived and lost.

python -m soak --seconds 60                                    all attacks, in turns
python -m soak --only damage,kills --seconds 600 --seed 7
python -m soak --only scenarios --tries 10000 --seconds inf --json one.json
python -m soak --add one.json two.json --markdown table.md     several together, as the table of docs/archive/soaks.md
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic

from soak.attack import Attack
from soak.budgets import Budgets
from soak.counts import Counts, added, as_markdown, as_text, read, write
from soak.damage import Damage
from soak.inputs import Inputs
from soak.io import Io
from soak.policies import Policies
from soak.processes import Groups, Kills, Signals
from soak.replies import Replies
from soak.scenarios import Scenarios

FUZZ: tuple[type[Attack], ...] = (Scenarios, Budgets, Damage, Inputs, Policies, Replies)  # within this process
NOTE_S = 30.0  # a soak of hours may be ended by anything: this often its counts are written
SOAK: tuple[type[Attack], ...] = (*FUZZ, Io, Kills, Signals, Groups)


def main() -> None:
    known = {attack.name: attack for attack in SOAK}
    options = argparse.ArgumentParser(
        prog="python -m soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=float, default=60.0, help="how long, all attacks together")
    options.add_argument("--tries", type=int, default=sys.maxsize, help="the most trials of each attack")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default=",".join(known), help=f"some of {','.join(known)}")
    options.add_argument("--json", type=Path, help="write the counts to this file too")
    options.add_argument("--markdown", type=Path, help="write the table to this file too")
    options.add_argument("--add", type=Path, nargs="+", help="attack nothing; add up the counts of these files")
    given = options.parse_args()
    if unknown := set(given.only.split(",")) - known.keys():
        options.error(f"there is no attack {sorted(unknown)[0]}; allowed: {', '.join(known)}")
    if given.add:
        counts = added([read(file) for file in given.add], list(known))
    else:
        kinds = [known[name] for name in given.only.split(",")]
        counts = attacked(kinds, given.seed, given.seconds, given.tries, given.json)
    print(as_text(counts))
    if given.json:
        write(given.json, counts)
    if given.markdown:
        given.markdown.write_text(as_markdown(counts), encoding="utf-8")
    sys.exit(any(count.lost for count in counts))


def attacked(
    kinds: list[type[Attack]], seed: int, seconds: float, tries: int, noted: Path | None = None
) -> list[Counts]:
    """Attack by turns, each kind for the same share of the time; the counts so far are noted now and then."""
    with tempfile.TemporaryDirectory(prefix="feelstream-soak-") as place:
        end, note = monotonic() + seconds, monotonic() + NOTE_S
        attacks = [kind(Path(place) / kind.name, random.Random(seed)) for kind in kinds]
        for number in (signal.SIGINT, signal.SIGTERM):  # in the background, too: what came out so far
            signal.signal(number, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            while (left := [each for each in attacks if each.tried < min(tries, each.most)]) and monotonic() < end:
                attack = min(left, key=lambda each: each.spent_s)
                before = len(attack.lost)
                attack.try_once()
                for loss in attack.lost[before:]:
                    print(f"lost, {attack.name}: {loss}", file=sys.stderr, flush=True)
                if noted and monotonic() > note:
                    write(noted, [each.counts for each in attacks])
                    note = monotonic() + NOTE_S
        for attack in attacks:
            attack.close()
    return [each.counts for each in attacks]


if __name__ == "__main__":
    main()
