"""The studio: a page on this machine on which schedulers race through the same world (extra `studio`).

race, lanes and views hold what is shown and know no page; charts, bars and maps turn views into ECharts options; saving
writes files; the other modules lay them out with NiceGUI.
"""

from functools import cache
from importlib import resources


@cache
def asset(name: str) -> str:
    """A file of the page that is not Python: a style or a script."""
    return resources.files("feelstream.studio").joinpath(name).read_text(encoding="utf-8")
