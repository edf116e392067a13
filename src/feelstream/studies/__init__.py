"""Studies: what one is, and what it is made of. Each is a package of its own that an entry point names.

plans: arms × seeds. results: stored runs, panels, statistics. claims: statements as numbers per seed, and verdicts.
pages: the report and pages of the docs. commands: options, and playing a plan. registry: which studies are installed.
"""

from feelstream.studies.contract import Command, Study

__all__ = ["Command", "Study"]
