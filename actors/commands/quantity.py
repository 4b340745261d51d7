"""Numbers that options take."""

import math
from typing import final

import click
from typing_extensions import override

__all__ = ["Quantity"]


@final
class Quantity(click.FloatRange):
    """A number within a range; `nan` and `inf`, which no range keeps out, are none."""

    @override
    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number that anything can have.", param, ctx)
        return number
