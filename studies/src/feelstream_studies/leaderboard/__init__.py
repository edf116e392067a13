"""The leaderboard: every policy on several scenarios."""

from feelstream.studies import Command, Study

STUDY = Study(
    name="leaderboard",
    title="Every policy on several scenarios",
    commands=(
        Command(
            "leaderboard", "Compare all policies on several scenarios.", "feelstream_studies.leaderboard.command:app"
        ),
    ),
)
