"""Options of the limits per peer, and of the HTTP listener."""

import math
import re
from functools import partial
from pathlib import Path
from typing import Final, final

import attrs
import click
from typing_extensions import override

from actors.cli.group import CommandError
from actors.cli.options import HTTP_OPTIONS, Option, Topic, http_config, topic_options
from actors.node.config import NodeConfig
from actors.node.limits import DEFAULT_LIMITS, NodeLimits
from fsm.limits.rates import Rate


@final
@attrs.frozen
class HttpOptions(Topic):
    """The address of health and metrics, and the token of their readers."""

    http: str | None
    http_token_file: Path | None
    rest: bool

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        if self.http is None and self.rest:
            raise CommandError(
                "--rest serves runtimes over HTTP, but no place for that is named; add --http"
            )
        served = http_config(self.http, self.http_token_file)
        if served is None:
            return config
        return attrs.evolve(config, http=attrs.evolve(served, rest=self.rest))


http_options = topic_options(
    HttpOptions,
    *HTTP_OPTIONS,
    click.option(
        "--rest",
        is_flag=True,
        help="Serve sessions of runtimes over HTTP: /rest/session, /rest/messages.",
    ),
)
"""The options of the HTTP listener."""

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


@final
@attrs.frozen(kw_only=True)
class LimitOptions(Topic):
    """The limits, by the names of their options."""

    message_rate: Rate
    identity_rate: Rate
    node_rate: Rate
    handshake_rate: Rate
    max_unauthenticated: float
    max_unauthenticated_per_host: float
    outbox_messages: float
    outbox_bytes: float
    outbox_budget: float
    write_timeout: float
    max_malformed: float
    max_failed_opens: float
    fan_out: float
    allow_origin: frozenset[str]

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        limits = NodeLimits(
            messages=self.message_rate,
            identity=self.identity_rate,
            nodes=self.node_rate,
            handshakes=self.handshake_rate,
            unauthenticated=self.max_unauthenticated,
            unauthenticated_per_host=self.max_unauthenticated_per_host,
            outbox_messages=self.outbox_messages,
            outbox_bytes=self.outbox_bytes,
            outbox_budget=self.outbox_budget,
            write_timeout=self.write_timeout,
            max_malformed=self.max_malformed,
            max_failed_opens=self.max_failed_opens,
            fan_out=self.fan_out,
        )
        return attrs.evolve(config, limits=limits, origins=self.allow_origin)


def _rate(name: str, default: Rate, says: str) -> Option:
    shown = f"{default.per_second:g}:{default.burst}"
    read = partial(_to_rate, default.burst / default.per_second)
    return click.option(
        name, callback=read, metavar="RATE[:BURST]", default=shown, show_default=True, help=says
    )


def _count(name: str, default: float, says: str) -> Option:
    return click.option(
        name,
        callback=_to_count,
        metavar="SIZE" if "outbox-b" in name else "COUNT",
        default=_readable(default),
        show_default=True,
        help=says,
    )


def _readable(count: float) -> str:
    """Write a number with its unit, as the options read it."""
    for unit, size in reversed(_UNITS.items()):
        if count % size == 0 and count >= size:
            return f"{count / size:g}{unit}"
    return f"{count:g}"


_D: Final = DEFAULT_LIMITS

limit_options = topic_options(
    LimitOptions,
    _rate("--message-rate", _D.messages, "Messages per second accepted from one session."),
    _rate(
        "--identity-rate",
        _D.identity,
        "Messages per second accepted from all sessions of one user.",
    ),
    _rate("--node-rate", _D.nodes, "Messages per second accepted from another domain's node."),
    _rate("--handshake-rate", _D.handshakes, "Connections per second accepted from one host."),
    _count("--max-unauthenticated", _D.unauthenticated, "Connections without a session."),
    _count(
        "--max-unauthenticated-per-host",
        _D.unauthenticated_per_host,
        "Connections without a session from one host.",
    ),
    _count("--outbox-messages", _D.outbox_messages, "Messages that wait for one link."),
    _count("--outbox-bytes", _D.outbox_bytes, "Bytes that wait for one link."),
    _count("--outbox-budget", _D.outbox_budget, "Bytes of memory of all waiting messages."),
    _count("--write-timeout", _D.write_timeout, "Seconds that a peer may take to read 64 KiB."),
    _count("--max-malformed", _D.max_malformed, "Malformed messages of a link per minute."),
    _count(
        "--max-failed-opens",
        _D.max_failed_opens,
        "Wrong tokens of a host per minute; each further one costs it the connection.",
    ),
    _count("--fan-out", _D.fan_out, "Sessions that may receive one message."),
    click.option(
        "--allow-origin",
        metavar="ORIGIN",
        multiple=True,
        callback=_origins,
        help="Web origin whose pages may connect, such as https://app.example; repeatable.",
    ),
)
"""The options of the limits; `none` or 0 stands for no limit."""
