"""The result of a bench: rows of figures, each of the ordinary or of the best case."""

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
    """How usual what is measured is."""

    ORDINARY = "ordinary case"
    """What users have: other ends and bodies with each message, or a busy or hostile neighbour."""

    BEST = "best case"
    """The same again and again, so that everything is remembered; no user has less."""


class BenchError(Exception):
    """The run was not as it was to be measured."""


@attrs.frozen
class Row:
    """A figure.

    Attributes:
        reach: The number to reach; None: none is fixed.
        is_least: Whether that is the least that the value should be, instead of the most.
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
    """Return a report for people."""
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
    """Make the command of a bench, whose module says in its first line what it answers.

    Args:
        measure: Takes the sizes and the options by name.
        sizes: Of each number its usual and its small value.
        options: Further ones.
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
    """Return the figures of all rounds, taken by turns, so that a busy machine hits all."""
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
    """Return a row for each name; what is to be reached is that of the node."""
    return [
        Row(f"{what}, {name}", statistics.median(figures), unit, case,
            reach if name == "node" else None)
        for name, figures in taken.items()
    ]  # fmt: skip


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of rounds."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
