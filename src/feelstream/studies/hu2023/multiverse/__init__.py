"""The multiverse: every claim of the paper under every defensible reading and every setting that it does not state.

settings: what may differ, and a specification, one choice of each. design: which specifications are played.
plans: specifications as arms of ordinary plans. outcomes: what each claim comes to in each. search: towards a
specification under which all claims are reproduced.

References: S. Steegen, F. Tuerlinckx, A. Gelman, W. Vanpaemel, "Increasing Transparency Through a Multiverse Analysis",
Perspectives on Psychological Science 11, 2016. U. Simonsohn, J. P. Simmons, L. D. Nelson, "Specification Curve
Analysis", Nature Human Behaviour 4, 2020.
"""
