"""The paper that this package began with, reproduced, and its claims under other readings of it.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238.
"""

from feelstream.studies.contract import Command, Study

STUDY = Study(
    name="hu2023",
    title="Dynamic Scheduling for Federated Edge Learning with Streaming Data",
    page="feelstream.studies.hu2023.page.content:page",
    commands=(
        Command(
            "reproduce",
            "Reproduce the paper's figures: runs, panels, curves, claims and a report.",
            "feelstream.studies.hu2023.commands.reproduce:app",
        ),
        Command(
            "confirm",
            "Judge the paper's claims on untouched seeds.",
            "feelstream.studies.hu2023.commands.confirm:app",
        ),
        Command(
            "multiverse",
            "Search readings of the paper for those under which its claims hold.",
            "feelstream.studies.hu2023.commands.multiverse:app",
        ),
    ),
    earlier=("reproduce-",),
)
