"""`python -m actors top`: sessions, messages a second, drops and queues of a running node."""

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import click
import orjson
import trio

from actors.cli import failure, options, own_runtime
from actors.cli.group import CommandError, ExitCode, echo
from fsm.commands.parameters import argument, option
from fsm.dashboard.totals import NodeTotals, TotalsReader
from specs.jsonvalue import JsonObject
from specs.limits.dashboard import FRAME_INTERVAL
from specs.limits.protocol import HTTP_REQUEST_TIMEOUT

if TYPE_CHECKING:
    from actors.kit.http_client import HttpClient, ServerUrl

_EVENTS: Final = "/dashboard/events"
_MOST_SECONDS: Final = 3600

_EVENT_BYTES: Final = 16_777_216
"""Largest event of the stream; the first one lists up to 5,000 runtimes (ours)."""

_REFUSALS: Final[Mapping[int, tuple[ExitCode, str]]] = {
    HTTPStatus.UNAUTHORIZED: (ExitCode.REFUSED, "name the file of its --http-token-file"),
    HTTPStatus.NOT_FOUND: (ExitCode.FAILED, "no dashboard is there; name the --http of a node"),
    HTTPStatus.SERVICE_UNAVAILABLE: (ExitCode.CANNOT_CONNECT, "it has other viewers; try later"),
}
"""Exit status and advice, by status of HTTP."""


def _read_server(text: str) -> "ServerUrl":
    from actors.kit.http_client import ServerUrl  # noqa: PLC0415 - slow to import

    return ServerUrl.read(text)


@options.define_command("top", has_log=True)
def command(
    *,
    server: "ServerUrl" = argument("URL", read=_read_server, required=True),
    interval: int = option("SECONDS", type=options.Count(1, _MOST_SECONDS), default=1),
    once: bool = option(),
    http_token_file: Path | None = option(),
    ca: Path | None = options.CA,
    insecure: bool = option(),
    is_json: bool = options.JSON_LINES,
) -> int:
    """Show sessions, messages a second, drops and the longest queues of a node, until Ctrl-C.

    URL is where the node serves its dashboard: `http_url` of its ready line, such as
    http://127.0.0.1:4180. A terminal is refreshed in place; elsewhere, each interval has a block of
    lines.

    Args:
        interval: Seconds from one report to the next; rates are means over them.
        once: Print one report, after one interval.
        http_token_file: File with the token of the node for readers of its dashboard.
        insecure: Read from a node on another machine without TLS: others can read the token.
    """
    options.check_plain([server.text], insecure=insecure)
    token = None if http_token_file is None else options.read_token(http_token_file)
    tls = options.client_tls(ca)

    async def follow() -> None:
        from actors.kit.http_client import HttpClient  # noqa: PLC0415 - as above

        client = HttpClient(server, tls=tls)
        if token is not None:
            client.bear(token.decode("latin-1"))
        try:
            await _follow(client, interval, once=once, is_json=is_json)
        finally:
            await client.aclose()

    return failure.run(partial(own_runtime.until_signal, follow))


async def _follow(client: "HttpClient", interval: int, *, once: bool, is_json: bool) -> None:
    """Print a report of the node after each interval.

    Raises:
        CommandError: The node cannot be reached, refuses, or ends.
    """
    from actors.kit.http_client import HttpError  # noqa: PLC0415 - as above

    frames, count = round(interval / FRAME_INTERVAL), 0
    reader = TotalsReader(frames)

    def is_enough(frame: JsonObject) -> bool:
        nonlocal count
        totals = reader.read(frame)
        is_due = count > 0 and count % frames == 0
        count += 1
        if is_due:
            _print(totals, is_json=is_json, is_single=once)
        return is_due and once

    where = client.server.text
    try:
        await _read_frames(client, is_enough)
    except trio.TooSlowError as exc:
        why = f"{where} does not answer; try again"
        raise CommandError(why, ExitCode.TIMEOUT) from exc
    except HttpError as exc:
        why = f"the node at {where} has ended; try again"
        if not count:
            why = f"{exc}; name the http_url of a node that runs"
        raise CommandError(why, ExitCode.CANNOT_CONNECT) from exc
    except (LookupError, TypeError, ValueError) as exc:
        why = f"what {where} serves is no dashboard of this version; name a node"
        raise CommandError(why, ExitCode.FAILED) from exc


async def _read_frames(client: "HttpClient", is_enough: Callable[[JsonObject], bool]) -> None:
    """Read the frames of the stream of server-sent events until there are enough.

    Raises:
        CommandError: The node refuses, or ends the stream.
        HttpError: The connection cannot be opened, or breaks.
        TooSlowError: The node has sent nothing for `HTTP_REQUEST_TIMEOUT` seconds.
        ValueError: It is no such stream.
    """
    with trio.fail_after(HTTP_REQUEST_TIMEOUT):
        stream = await client.open("GET", _EVENTS)
    try:
        if stream.status != HTTPStatus.OK:
            unknown = ExitCode.FAILED, "see the log of the node"
            code, advice = _REFUSALS.get(stream.status, unknown)
            raise CommandError(f"{stream.server} answers {stream.status}; {advice}", code)
        rest = b""
        with trio.fail_after(HTTP_REQUEST_TIMEOUT) as limit:
            while part := await stream.next():
                *events, rest = (rest + part).split(b"\n\n")
                if len(rest) > _EVENT_BYTES:
                    raise ValueError("an event is too long")
                for event in events:
                    fields = dict(line.split(b": ", 1) for line in event.splitlines())
                    frame = orjson.loads(fields[b"data"])
                    if not isinstance(frame, dict):
                        raise TypeError("an event is no object")
                    if fields[b"event"] != b"end" and is_enough(frame):
                        return
                    limit.deadline = trio.current_time() + HTTP_REQUEST_TIMEOUT
    finally:
        await stream.aclose()
    why = f"the node at {stream.server} ended the stream, as it was read too slowly; try again"
    raise CommandError(why, ExitCode.CANNOT_CONNECT)


def _print(totals: NodeTotals, *, is_json: bool, is_single: bool) -> None:
    if is_json:
        failure.say("top", **attrs.asdict(totals))
    elif is_single:
        echo(*_lines(totals))
    elif sys.stdout.isatty():
        click.clear()
        echo(*_lines(totals))
    else:
        echo(*_lines(totals), "")


def _lines(totals: NodeTotals) -> list[str]:
    """Return the report as lines for people."""
    size = f"runtimes {totals.runtimes}  links {totals.links}"
    time = datetime.fromtimestamp(totals.at).astimezone()
    queues = [f"{queue.waiting:>9,}  {queue.runtime or queue.link}" for queue in totals.slowest]
    return [
        f"{totals.domain}  {time:%H:%M:%S}  {size}",
        f"sessions  {_list_counts(totals.sessions)}",
        f"drops     {_list_counts(totals.drops)}",
        "",
        f"{'messages':<12}{'a second':>12}{'total':>14}",
        *(
            f"{name:<12}{totals.per_second[name]:>12,.1f}{total:>14,}"
            for name, total in totals.total.items()
        ),
        "",
        f"{'waiting':>9}  runtime",
        *(queues or [f"{'none':>9}"]),
    ]


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"
