"""Everyone's accuracy on a few devices' energy: policies within the paper's budget against training everyone."""

from feelstream.studies.contract import Study

STUDY = Study(
    name="within-budget",
    title="Within the budget",
    plan="feelstream.studies.within_budget.configurations:plan",
    page="feelstream.studies.within_budget.page:page",
)
