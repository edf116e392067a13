"""A matplotlib figure that a notebook shows when it is the last line of a cell, whether pyplot is in use or not."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that knows itself as PNG."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=120, facecolor="white")
        return file.getvalue()
