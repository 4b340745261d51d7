"""Options of the limits per peer, and of the HTTP listener."""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import click

from actors.cli.group import CommandError
from actors.cli.options import HTTP_OPTIONS, Option, http_config, made_from
from actors.http.config import HttpConfig
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from fsm.limits.rates import Rate


def _http(http: str | None, http_token_file: Path | None, *, rest: bool) -> HttpConfig | None:
    if http is None and rest:
        raise CommandError(
            "--rest serves runtimes over HTTP, but no place for that is named; add --http"
        )
    served = http_config(http, http_token_file)
    return None if served is None else attrs.evolve(served, rest=rest)


http_options = made_from(
    "http",
    _http,
    *HTTP_OPTIONS,
    click.option(
        "--rest",
        is_flag=True,
        help="Serve sessions of runtimes over HTTP: /rest/session, /rest/messages.",
    ),
)
"""The options of the HTTP listener, as an `HttpConfig` or None."""

_NONE: Final = frozenset({"none", "0"})
"""Values for no limit."""

_RATE: Final = re.compile(r"(?P<rate>\d{1,9}(?:\.\d{1,6})?)(?::(?P<burst>\d{1,9}))?")
_SIZE: Final = re.compile(r"(?P<count>\d{1,15})(?P<unit>|KiB|MiB|GiB)")
_UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_ORIGIN: Final = re.compile(r"https?://[^/\s?#@]+", re.ASCII)


def _to_rate(bursts: float, _: click.Context, __: click.Parameter, value: str) -> Rate:
    """Read so many a second, and so many at once after a rest: `100:200`."""
    if value in _NONE:
        return Rate(math.inf, 1)
    read = _RATE.fullmatch(value)
    rate = 0.0 if read is None else float(read["rate"])
    if read is None or not rate:
        raise click.BadParameter(f"{value!r} is neither a rate such as 100 or 100:200 nor none")
    burst = int(read["burst"] or math.ceil(rate * bursts))
    if not burst:
        raise click.BadParameter(f"{value!r} lets nothing pass; the burst is at least 1")
    return Rate(rate, burst)


def _to_count(_: click.Context, __: click.Parameter, value: str) -> float:
    """Read a number that may be infinite."""
    if value in _NONE:
        return math.inf
    read = _SIZE.fullmatch(value)
    if read is None or not int(read["count"]):
        raise click.BadParameter(f"{value!r} is neither a number such as 1000 or 64MiB nor none")
    return float(int(read["count"]) * _UNITS[read["unit"]])


def _origins(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    """Check and lower what browsers send as `Origin`."""
    for one in value:
        if not _ORIGIN.fullmatch(one):
            raise click.BadParameter(f"{one!r} is no origin such as https://app.example")
    return frozenset(one.lower() for one in value)


_LIMITS: Final = {
    "message_rate": ("messages", "Messages per second accepted from one session."),
    "identity_rate": ("identity", "Messages per second accepted from all sessions of one user."),
    "node_rate": ("nodes", "Messages per second accepted from another domain's node."),
    "handshake_rate": ("handshakes", "Connections per second accepted from one host."),
    "max_unauthenticated": ("unauthenticated", "Connections without a session."),
    "max_unauthenticated_per_host": (
        "unauthenticated_per_host",
        "Connections without a session from one host.",
    ),
    "outbox_messages": ("outbox_messages", "Messages that wait for one link."),
    "outbox_bytes": ("outbox_bytes", "Bytes that wait for one link."),
    "outbox_budget": ("outbox_budget", "Bytes of memory of all waiting messages."),
    "write_timeout": ("write_timeout", "Seconds that a peer may take to read 64 KiB."),
    "max_malformed": ("max_malformed", "Malformed messages of a link per minute."),
    "max_failed_opens": (
        "max_failed_opens",
        "Wrong tokens of a host per minute; each further one costs it the connection.",
    ),
    "fan_out": ("fan_out", "Sessions that may receive one message."),
}
"""For each option its field of `NodeLimits`, which has kind and default, and its help."""


def _option(name: str, field: str, text: str) -> Option:
    default: Rate | float = getattr(DEFAULT_LIMITS, field)
    read: Callable[[click.Context, click.Parameter, str], object] = _to_count
    if isinstance(default, Rate):
        read = partial(_to_rate, default.burst / default.per_second)
        metavar, shown = "RATE[:BURST]", f"{default.per_second:g}:{default.burst}"
    else:
        metavar, shown = "SIZE" if "outbox_b" in name else "COUNT", _readable(default)
    flag = f"--{name.replace('_', '-')}"
    return click.option(flag, callback=read, metavar=metavar, default=shown, help=text)


def _readable(count: float) -> str:
    """Write a number with its unit, as the options read it."""
    for unit, size in reversed(_UNITS.items()):
        if count % size == 0 and count >= size:
            return f"{count / size:g}{unit}"
    return f"{count:g}"


limit_options = made_from(
    "limits",
    NodeLimits,
    *(_option(name, *declared) for name, declared in _LIMITS.items()),
    names={name: field for name, (field, _) in _LIMITS.items()},
)
"""The options of the limits, as `NodeLimits`; `none` or 0 stands for no limit."""

origin_option = click.option(
    "--allow-origin",
    metavar="ORIGIN",
    multiple=True,
    callback=_origins,
    help="Web origin whose pages may connect, such as https://app.example; repeatable.",
)
