"""Results of benches: measured figures with targets, reports, and the command of a bench."""

import statistics
import sys
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import attrs
import click
import orjson
import trio

SCHEMA: Final = "protofly.bench/3"

_Key = TypeVar("_Key", bound=Hashable)
_Figure = TypeVar("_Figure")


class Case(StrEnum):
    """Kinds of measured situations: an ordinary or an ideal one."""

    ORDINARY = "ordinary case"
    """Usual situation: changing senders and bodies, or busy or hostile neighbours."""

    BEST = "best case"
    """Ideal situation: the same operation again and again, so that all caches are effective."""


class BenchError(Exception):
    """A measurement is invalid, because something went wrong during the run."""


@attrs.frozen
class Row:
    """One measured figure, with its unit and its target.

    Attributes:
        reach: Target for the value; None: there is no target.
        is_least: Whether the target is the minimum for the value, instead of the maximum.
    """

    what: str
    value: float
    unit: str
    case: Case = Case.ORDINARY
    reach: float | None = None
    is_least: bool = False

    @property
    def verdict(self) -> str:
        if self.reach is None:
            return "no reach"
        is_met = self.value >= self.reach if self.is_least else self.value <= self.reach
        limit = "at least" if self.is_least else "at most"
        return f"{'reached' if is_met else 'missed'}: {limit} {self.reach:g}"


Report: TypeAlias = dict[str, Any]  # type: ignore[explicit-any]  # an object of JSON


def table(report: Report) -> str:
    """Return a report as a table of text for people."""
    lines = [
        (row["what"], f"{row['value']:,.10g} {row['unit']}", row["case"], row["verdict"])
        for row in report["rows"]
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    return "\n".join([f"{report['bench']}: {report['question']}", *(f"  {text}" for text in texts)])


def program(  # type: ignore[explicit-any]  # the sizes of each bench are its own
    measure: Callable[..., Awaitable[list[Row]]],
    sizes: Mapping[str, tuple[float, float]],
    *options: click.Option,
) -> click.Command:
    """Make the command of a bench; the first line of its module states the question it answers.

    Args:
        measure: Function that measures; gets the sizes and the options by name.
        sizes: Numeric options, each with its usual and its small value.
        options: Further options.
    """
    module = sys.modules[measure.__module__]
    name = module.__spec__.name if module.__spec__ else module.__name__
    question = str(module.__doc__).partition("\n")[0]

    def run(*, as_json: bool, is_small: bool, **given: object) -> None:
        chosen = {name: given.pop(name) or pair[is_small] for name, pair in sizes.items()} | given
        rows = trio.run(partial(measure, **chosen))
        cells = [
            {**attrs.asdict(row), "value": float(f"{row.value:.4g}"), "verdict": row.verdict}
            for row in rows
        ]
        report = {"schema": SCHEMA, "bench": name, "question": question, "rows": cells}
        click.echo(orjson.dumps(report) if as_json else table(report))

    parameters: list[click.Parameter] = [
        *(
            click.Option([f"--{size}"], type=type(usual), help=f"[default: {usual:,}]")
            for size, (usual, _) in sizes.items()
        ),
        *options,
        click.Option(["--json", "as_json"], is_flag=True, help="One line of JSON."),
        click.Option(["--small", "is_small"], is_flag=True, help="Smallest sizes: does it run?"),
    ]
    return click.Command(name, callback=run, params=parameters, help=module.__doc__)


async def interleaved(
    rounds: int, works: Mapping[_Key, Callable[[], Awaitable[_Figure]]]
) -> dict[_Key, list[_Figure]]:
    """Run several measurements in turn, for some rounds; return all figures of each.

    So a disturbance of the machine affects all of them.
    """
    taken: dict[_Key, list[_Figure]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            taken[name].append(await work())
    return taken


def medians(
    what: str,
    taken: Mapping[str, Sequence[float]],
    unit: str,
    case: Case = Case.ORDINARY,
    reach: float | None = None,
) -> list[Row]:
    """Return a row with the median figure for each name; only the node has the target."""
    return [
        Row(f"{what}, {name}", statistics.median(figures), unit, case,
            reach if name == "node" else None)
        for name, figures in taken.items()
    ]  # fmt: skip


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of the figures of the same round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that `percent` percent of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
