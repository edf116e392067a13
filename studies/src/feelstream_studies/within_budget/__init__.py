"""Everyone's accuracy on a few devices' energy: policies within the paper's budget against training everyone."""

from feelstream.studies import Study

STUDY = Study(
    name="within-budget",
    title="Within the budget",
    plan="feelstream_studies.within_budget.configurations:plan",
    page="feelstream_studies.within_budget.page:page",
)
