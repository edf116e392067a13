"""Changes of a chart's options: what is sent makes the old options into the new ones, and is no more than needed."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from builders import small
from hypothesis import given
from hypothesis import strategies as st

from feelstream.studio import charts, maps
from feelstream.studio.changes import differences
from feelstream.studio.lanes import LiveLane

leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("ab", max_size=2)
options = st.dictionaries(
    st.sampled_from(["series", "data", "xAxis", "a"]),
    st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text("xy", max_size=2), inner)
    ),
)


def applied(old: Any, changes: list[list[Any]]) -> Any:
    """What chart.js does with changes, in Python and after the way over the wire."""
    found = deepcopy(old)
    for (*way, last), *what in json.loads(json.dumps(changes)):
        holder = found
        for key in way:
            holder = holder[key]
        if len(what) == 2:
            holder[last][what[0] :] = what[1]
        elif what:
            holder[last] = what[0]
        else:
            del holder[last]
    return found


@given(options, options)
def test_changes_make_the_old_options_into_the_new(old: dict, new: dict) -> None:
    assert applied(old, differences(old, new)) == new
    assert differences(new, deepcopy(new)) == []


def test_a_round_sends_its_points_and_not_the_chart() -> None:
    lane = LiveLane("lyapunov", small(), 3)
    for _ in range(4):
        lane.step()
    before, timeline = charts.curves([lane], "energy_mean_cum_j", 4, False), maps.timeline(lane, 0, 4, None, False)
    lane.step()
    after = charts.curves([lane], "energy_mean_cum_j", 5, False)
    changes = differences(before, after)
    assert [change[0] for change in changes] == [("series", 0, "data"), ("series", 0, "markLine", "data", 0, "xAxis")]
    assert changes[0][1:] == [4, [after["series"][0]["data"][-1]]]
    marks = differences(timeline, maps.timeline(lane, 0, 5, None, False))
    assert all(change[1] > 0 for change in marks if change[0][-1] == "data")
    assert len(json.dumps(marks)) < len(json.dumps(timeline)) / 3


def test_other_curves_are_sent_as_a_whole() -> None:
    """Else ECharts would keep what it was not told of."""
    two = {"series": [{"name": "a", "data": [1]}, {"name": "b", "data": [2]}]}
    one = {"series": [{"name": "a", "data": [1]}]}
    assert differences(one, two) == [[("series",), two["series"]]]
    assert differences(two, one) == [[("series",), one["series"]]]
