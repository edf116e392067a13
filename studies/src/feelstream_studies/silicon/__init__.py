"""Does it survive real silicon? Every policy under the cubic law and under the voltages of real cores."""

from feelstream.studies import Study

STUDY = Study(
    name="silicon",
    title="Does it survive real silicon?",
    plan="feelstream_studies.silicon.configurations:plan",
    page="feelstream_studies.silicon.page:page",
)
