"""A matplotlib figure that a notebook shows when it is the last line of a cell, whether pyplot is in use or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from threading import RLock
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from feelstream.errors import RunError

# matplotlib keeps its settings in one place for all threads, so figures are made one at a time.
ONE_AT_A_TIME = RLock()
Style = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None


class Picture(Figure):
    """A figure that knows itself as PNG."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=120, facecolor="white")
        return file.getvalue()


@dataclass(frozen=True)
class Look:
    """How a user wants a figure: in axes of their own, of a size, in a style of matplotlib's or of their own."""

    ax: Any = None  # one Axes, or several in a list or an array
    figsize: tuple[float, float] | None = None  # inches
    style: Style = None

    @contextmanager
    def settings(self, ours: Mapping[str, Any]) -> Iterator[None]:
        """Ours wherever the user's settings are as matplotlib ships them, theirs wherever they changed one."""
        theirs, shipped = dict[Any, Any](mpl.rcParams), dict[Any, Any](mpl.rcParamsDefault)
        left: Any = {key: value for key, value in ours.items() if theirs[key] == shipped[key]}
        with ONE_AT_A_TIME, mpl.rc_context(left), ExitStack() as above:
            if self.style is not None:
                try:
                    above.enter_context(mpl.style.context(self.style))  # pyright: ignore
                except OSError:
                    known = ", ".join(mpl.style.available)  # pyright: ignore
                    raise RunError(f"style: matplotlib has no style {self.style!r}; known: {known}") from None
            yield

    def frame(self, rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
        """A figure and its (rows, columns) axes: the user's own, or new ones; size: inches, if they asked for none."""
        if self.figsize is not None and np.shape(self.figsize) != (2,):
            raise RunError(f"figsize: must be a width and a height in inches, as in (6, 3), not {self.figsize!r}")
        if self.ax is None:
            figure = Picture(figsize=self.figsize or size, layout="constrained")
            FigureCanvasAgg(figure)
            return figure, figure.subplots(rows, columns, squeeze=False)
        given = np.ravel(np.asarray(self.ax, object))
        if len(given) != rows * columns or not all(isinstance(axes, Axes) for axes in given):
            found = len(given) if all(isinstance(axes, Axes) for axes in given) else repr(self.ax)
            raise RunError(f"ax: must be {rows * columns} Axes, one for each panel, not {found}")
        return given[0].figure, given.reshape(rows, columns)
