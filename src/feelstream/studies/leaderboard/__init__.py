"""The leaderboard: every policy on several scenarios."""

from feelstream.studies.contract import Command, Study

STUDY = Study(
    name="leaderboard",
    title="Every policy on several scenarios",
    commands=(
        Command(
            "leaderboard", "Compare all policies on several scenarios.", "feelstream.studies.leaderboard.command:app"
        ),
    ),
)
