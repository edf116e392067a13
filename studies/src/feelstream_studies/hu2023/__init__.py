"""The paper that this package began with, reproduced.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238.
"""

from feelstream.studies import Command, Study

STUDY = Study(
    name="hu2023",
    title="Dynamic Scheduling for Federated Edge Learning with Streaming Data",
    page="feelstream_studies.hu2023.page:page",
    commands=(
        Command(
            "reproduce",
            "Reproduce the paper's figures: runs, panels, curves, claims and a report.",
            "feelstream_studies.hu2023.command:app",
        ),
    ),
)
