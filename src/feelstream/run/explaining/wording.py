"""Numbers, quantities and lists as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from feelstream.quantities import MINUS, QUANTITIES


def number(value: float) -> str:
    """Three significant digits, without an exponent where none is needed.

    >>> number(0.0512), number(1234.5), number(-2)
    ('0.0512', '1230', '−2')
    """
    if value == 0 or not np.isfinite(value):
        return f"{abs(value) if value == 0 else value:g}"
    if 1e-4 <= abs(value) < 1e6:
        digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
        text = f"{float(f'{value:.3g}'):.{digits}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.2e}"
    return MINUS + text[1:] if text.startswith("-") else text


def shown_as(name: str, value: float) -> str:
    """A value of a column of the trace in the unit that readers expect.

    >>> shown_as("queue_j", 0.0123), shown_as("score", 0.5), shown_as("gain", float("nan"))
    ('12.3 mJ', '0.5', '–')
    """
    if not np.isfinite(value):
        return "–"
    quantity = QUANTITIES.get(name)
    return number(value) if quantity is None else f"{number(value * quantity.scale)} {quantity.unit}".rstrip()


def listed(names: Sequence[object], most: int = 6, last: str = "and") -> str:
    """`1, 2 and 3`; of very many, the first few and how many more.

    >>> listed([3]), listed([3, 7, 9]), listed(range(9), 3), listed([1, 2], last="or")
    ('3', '3, 7 and 9', '0, 1, 2 and 6 more', '1 or 2')
    """
    texts = [str(name) for name in names]
    if len(texts) > most:
        texts = [*texts[:most], f"{len(names) - most} more"]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}"
