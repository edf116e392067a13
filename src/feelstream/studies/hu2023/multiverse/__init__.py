"""The multiverse: the paper's claims over readings of it and settings that it does not state, searched in stages.

registration.toml: what is tried and by which rules, fixed before any run. settings: a specification, one choice of
each. energy: all schedules, without learning. race: which of those that save what the paper saves keep their claims
with learning, seed by seed. mixed: what each setting does to a claim, and how likely it is. page: docs/multiverse.md.

References: S. Steegen, F. Tuerlinckx, A. Gelman, W. Vanpaemel, "Increasing Transparency Through a Multiverse Analysis",
Perspectives on Psychological Science 11, 2016. O. Maron, A. W. Moore, "The Racing Algorithm: Model Selection for Lazy
Learners", Artificial Intelligence Review 11, 1997.
"""
