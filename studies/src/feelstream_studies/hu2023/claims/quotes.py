"""The clauses of the paper that claims are made from, quoted; sections are those of arXiv:2305.01238."""

ABSTRACT = (
    "outperforms alternative methods without considering time-varying data importance, especially when the generation "
    "of training data shows strong temporal correlation (abstract)"
)
IID = "our method has better test accuracy in the i.i.d. scenario (5.1)"
NOT_IID = "It also outperforms the alternative method in the non-i.i.d. scenario (5.1)"
ACCURACY = {"iid": IID, "3digit": NOT_IID}
SAVING = (
    "we observe 16% and 35% of reduction in power consumption for the case with scheduling ratios |Π(t)|/K=0.05 and "
    "|Π(t)|/K=0.1, respectively (5.1)"
)
EARLY = (
    "A larger gap of test accuracy between the curves of amount-only and distribution-only methods can be observed at "
    "the early iterations (5.2)"
)
LATE = (
    "the distribution-only method achieves a similar and even higher level of test accuracy than the others at the "
    "later iterations (5.2)"
)
COMBINED = (
    "By combining the benefits of both metrics, the proposed data-importance metric is confirmed to be an effective "
    "measure (5.2)"
)
GAP = (
    "The testing loss difference between the two metrics becomes smaller in the scenario of uniformly distributed "
    "timings (5.2)"
)
CLEARER = "the performance gain of distribution-only method at the later stage becomes more clear (5.2)"
