"""Studies: each has a folder with its arms, claims, figures, parts of the report and commands. Nothing below knows any.

contract: what a study is. registry: ours, and those of installed packages. claims: statements as numbers per seed, and
verdicts. page, reporting: what a study adds to the report of its results. hu2023, leaderboard: ours.
"""

from feelstream.studies.contract import Command, Study

__all__ = ["Command", "Study"]
