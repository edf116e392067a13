"""The studio: a page on this machine on which schedulers race through the same world (extra `studio`).

race, lanes and views hold what is shown and know no page; words and charts turn views into sentences and ECharts
options; the other modules lay them out with NiceGUI.
"""
