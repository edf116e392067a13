"""Does it survive real silicon? Every policy under the cubic law and under the voltages of real cores."""

from feelstream.studies.contract import Study

STUDY = Study(
    name="silicon",
    title="Does it survive real silicon?",
    plan="feelstream.studies.silicon.configurations:plan",
    page="feelstream.studies.silicon.page:page",
)
