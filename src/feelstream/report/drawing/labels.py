"""Names beside points such that none covers another name or another point.

adjustText was tried on the six boards of docs/leaderboard.md: names cover each other, or, with settings under which
none does, some end far from their point; it takes longer, and it needs pyplot, whose state is global.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import cos, pi, sin

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from feelstream.report.drawing.style import legible

DISTANCES_PT = (6.0, 10.0, 15.0, 21.0, 28.0, 36.0, 46.0, 58.0, 72.0, 90.0, 110.0)
DIRECTIONS = 16
CLOSE_PT = 10.0  # a name farther away than this gets a line to its point
MARKER_PT = 4.0
GAP_PT = 1.2


def label_points(
    figure: Figure,
    axes: Axes,
    points: Sequence[tuple[float, float]],
    names: Sequence[str],
    size_pt: float,
    bars: Sequence[tuple[tuple[float, float], tuple[float, float]]] = (),
) -> list[Annotation]:
    """Write each name at the nearest free place around its point, earlier points first; limits must be final.

    Where no place is free, the one that is covered least. bars: ends of lines that names keep off if they can; above
    right of the point is tried first.
    """
    canvas = figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # the layout decides where the points are
    renderer, pixel = canvas.get_renderer(), figure.dpi / 72
    centres = [tuple(axes.transData.transform(point)) for point in points]
    reach = MARKER_PT * pixel
    taken = [Bbox.from_extents(x - reach, y - reach, x + reach, y + reach) for x, y in centres]
    inside = axes.get_window_extent(renderer)
    written: list[Annotation] = []
    names_at: list[Bbox] = []
    lines: list[Path] = []
    drawn = [Path(axes.transData.transform(bar)) for bar in bars]
    for point, (x, y), name in zip(points, centres, names, strict=True):
        note = axes.annotate(
            legible(name),
            point,
            (0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            annotation_clip=False,
            fontsize=size_pt,
            parse_math=False,  # a name with dollar signs is a name
        )
        note.set_in_layout(False)
        note.set_path_effects([withStroke(linewidth=1.6, foreground="white")])  # readable on an error bar
        box = note.get_window_extent(renderer)
        width, height = box.width / 2 + GAP_PT * pixel, box.height / 2
        best: tuple[float, Path | None, float, float, Bbox] | None = None
        for distance, step in product(DISTANCES_PT, range(DIRECTIONS)):
            angle = 2 * pi * (step + DIRECTIONS / 8) / DIRECTIONS
            # From the point to the middle of the name: the name begins `distance` away, whichever side it is on, and
            # between the sides a corner of it does, so that it keeps off both bars of its point.
            dx = cos(angle) * distance * pixel + max(-1.0, min(1.0, 1.5 * cos(angle))) * width
            dy = sin(angle) * distance * pixel + max(-1.0, min(1.0, 1.5 * sin(angle))) * height
            place = Bbox.from_extents(x + dx - width, y + dy - height, x + dx + width, y + dy + height)
            covered = sum(_shared(place, other) for other in taken) + _area(place) - _shared(place, inside)
            line = Path([(x, y), (x + dx, y + dy)]) if distance > CLOSE_PT else None
            if covered <= 1e-9:  # lines that cross are better than names that cover, and worse than neither
                covered = 1e-3 * _crossings(place, line, names_at, lines)
                covered += 1e-3 * sum(bar.intersects_bbox(place.padded(pixel), filled=False) for bar in drawn)
            if best is None or covered < best[0] - 1e-9:
                best = (covered, line, dx, dy, place)
            if covered <= 1e-9:
                break
        assert best is not None
        _, line, dx, dy, place = best
        taken.append(place)
        names_at.append(place)
        note.set_position((dx / pixel, dy / pixel))
        if line is not None:
            lines.append(line)
            # To the nearest place of the name's frame, so that no line goes through the name itself.
            end = (min(max(x, place.x0), place.x1) - x) / pixel, (min(max(y, place.y0), place.y1) - y) / pixel
            axes.annotate(
                "", point, end, textcoords="offset points", annotation_clip=False,
                arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "#777777", "shrinkA": 0.0, "shrinkB": 2.5},
            ).set_in_layout(False)  # fmt: skip
        written.append(note)
    return written


def _crossings(place: Bbox, line: Path | None, names: Sequence[Bbox], lines: Sequence[Path]) -> int:
    """How often a new name and the line to it would cross names and lines that are there."""
    count = sum(other.intersects_bbox(place, filled=False) for other in lines)
    if line is not None:
        count += sum(line.intersects_bbox(name, filled=False) for name in names)
        count += sum(line.intersects_path(other, filled=False) for other in lines)
    return count


def _area(box: Bbox) -> float:
    return box.width * box.height


def _shared(a: Bbox, b: Bbox) -> float:
    """Area that two boxes have in common."""
    width, height = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    return width * height if width > 0 and height > 0 else 0.0
