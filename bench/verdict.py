"""The result of a bench: the figures it compared, its limits, and what it leaves out."""

import sys
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn, final

import attrs
import click
import orjson

SCHEMA: Final = "protofly.bench/2"


@final
@attrs.frozen
class Verdict:
    """The outcome of one bench.

    Attributes:
        bench: Module of this folder.
        what: What `ours` and `peer` are, with their unit.
        ours: The figure of the product.
        peer: What it is held against: a figure of the same run, or a number that is fixed.
        ratio: `ours` in `peer`s; the median over rounds, so not always their quotient.
        reach: The ratio to reach; None: no number is fixed for this bench.
        missed: Every number that was to be reached and was not, in words; empty: all were.
        not_measured: What a reader might expect in these figures, and is not in them.
        figures: All others.
    """

    bench: str
    what: str
    ours: float
    peer: float
    ratio: float
    reach: float | None
    missed: tuple[str, ...] = ()
    not_measured: tuple[str, ...] = ()
    figures: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def is_met(self) -> bool:
        """Whether every number was reached."""
        return not self.missed

    def line(self) -> str:
        """Return all of it as one line of JSON."""
        own = attrs.asdict(self, filter=lambda field, _: field.name != "figures")
        rounded = {name: round(own[name], 3) for name in ("ours", "peer", "ratio")}
        # No figure takes the place of what every verdict has.
        result = {**self.figures, "schema": SCHEMA, **own, **rounded, "met": self.is_met}
        return orjson.dumps(result, option=orjson.OPT_NON_STR_KEYS).decode()

    def sentences(self) -> str:
        """Return it for people."""
        reach = "no number to reach" if self.reach is None else f"reach {self.reach:.2f}x"
        lines = [f"{name:<40} {value}" for name, value in _flat(self.figures)]
        figures = f"{self.ours:,.2f} / {self.peer:,.2f}"
        lines += [f"{self.what}: {figures}, {self.ratio:.2f}x ({reach})"]
        lines += [f"missed: {one}" for one in self.missed]
        lines += [f"not measured: {one}" for one in self.not_measured]
        return "\n".join(lines)

    def tell(self, *, as_json: bool) -> NoReturn:
        """Print the verdict, and exit with 1 if a number was missed."""
        click.echo(self.line() if as_json else self.sentences())
        sys.exit(0 if self.is_met else 1)


def _flat(figures: Mapping[str, object], of: str = "") -> Iterator[tuple[str, object]]:
    """Return every figure under the names that lead to it."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{of}{name} ")
        else:
            yield f"{of}{name}", f"{value:,.2f}" if isinstance(value, float) else value
