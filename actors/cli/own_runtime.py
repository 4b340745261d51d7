"""The runtime of a command: its options, its login at the node, and its opening."""

import os
import secrets
import shlex
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import trio

from actors.cli import failure, options
from actors.cli.group import CommandError, ExitCode, advise_on
from actors.kit import ids
from actors.runtime.config import RuntimeConfig
from actors.runtime.stubs import credentials
from fsm.commands.parameters import fields, group, option
from specs.reply_code import Code
from transports import errors, tls
from transports.link import Kind, Network

if TYPE_CHECKING:
    from actors.catalogue.source import Places
    from actors.hyperties import Caller
    from actors.runtime.runtime import Runtime

FOREIGN: Final = option(
    "DOMAIN=URL",
    text="URL of another domain's node, for the triangle; repeatable.",
    name="foreign",
    read=options.read_route,
)


# The login at the node.

_VARIABLE: Final = "PROTOFLY_CLIENT_SECRET"
"""Variable of the environment with the secret of the client; no option may show it."""


def _credentials(  # noqa: PLR0913 - one for each option
    *,
    token_file: Path | None = option(),
    token_command: str | None = option("COMMAND"),
    token_url: str | None = option("URL"),
    client_id: str | None = option(),
    client_secret_file: Path | None = option(
        text=f"File with the secret of the client [default: the variable {_VARIABLE}]."
    ),
    refresh_token_file: Path | None = option(),
    token_scope: str | None = option(),
    token_audience: str | None = option(),
    ca: Path | None,
) -> credentials.Credentials:
    """Return the source of tokens for the login at a node.

    Args:
        token_file: Log in at the node with the token in this file, read again for each new session.
        token_command: Log in with the first line that this command prints; run for each new
            session.
        token_url: Log in with a token of this OAuth 2.0 token endpoint, asked for each new session.
        client_id: Name of the client there.
        refresh_token_file: Ask with the refresh token in this file, which new ones replace
            [default: as the client itself].
        token_scope: Scope to ask for there.
        token_audience: Audience to ask for there [default: the domain of the node].
    """
    sources = {
        "--token-file": token_file,
        "--token-command": token_command,
        "--token-url": token_url,
    }
    if len(named := [name for name, value in sources.items() if value is not None]) > 1:
        raise CommandError(f"{' and '.join(named)} exclude each other", ExitCode.USAGE)
    more = {
        "--client-id": client_id,
        "--client-secret-file": client_secret_file,
        "--refresh-token-file": refresh_token_file,
        "--token-scope": token_scope,
        "--token-audience": token_audience,
    }
    from actors.runtime.stubs import token_sources  # noqa: PLC0415 - slow to import

    first = next((name for name, value in more.items() if value is not None), None)
    if token_url is None and first is not None:
        raise CommandError(f"{first} needs a token endpoint; add --token-url", ExitCode.USAGE)
    if token_url is not None and client_id is None:
        raise CommandError("--token-url needs a client; add --client-id", ExitCode.USAGE)
    try:
        if token_file is not None:
            file = credentials.TokenFile(token_file)
            file.read()
            return file
        if token_command is not None:
            return token_sources.TokenCommand(shlex.split(token_command))
        if token_url is not None:
            endpoint = token_sources.OAuthCredentials(
                url=token_url,
                client_id=client_id or "",
                secret=client_secret_file or os.environ.get(_VARIABLE),
                refresh=refresh_token_file,
                scope=token_scope,
                audience=token_audience,
                tls=_more_trust(ca),
            )
            endpoint.check()
            return endpoint
    except credentials.CredentialsError as exc:
        raise CommandError(f"{exc.reason}; {_SOURCES}") from exc
    except ValueError as exc:
        raise CommandError(f"--token-command is no command: {exc}", ExitCode.USAGE) from exc
    return credentials.NO_CREDENTIALS


OF_NODE: Final = {
    "node": option("URL", read=options.NODE_URL, required=True),
    "domain": option(text="The domain of the node.", read=options.DOMAIN),
}
"""Options of a runtime that exists for one command, by fields."""

LOGIN: Final = {"credentials": group(_credentials), "tls": options.CLIENT_TLS, "insecure": option()}
"""Options of the login at nodes, and of how they are dialled, by fields."""


def _more_trust(ca: Path | None) -> ssl.SSLContext | None:
    """Return what servers of others are dialled with; None: as the operating system has it.

    Args:
        ca: PEM file of authorities that are trusted beside those of the operating system.
    """
    if ca is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except OSError as exc:
        raise CommandError(f"cannot use the authorities in {ca}: {exc}; correct --ca") from exc
    return context


_SOURCES: Final = (
    "put a token into the --token-file, such as `token issue` makes, or correct --token-url, "
    "--client-secret-file and --refresh-token-file"
)


_LATER: Final[Mapping[int, ExitCode]] = {
    Code.UNAVAILABLE: ExitCode.CANNOT_CONNECT,
    Code.TIMEOUT: ExitCode.TIMEOUT,
}
"""Exit statuses of what may go well later."""

_ADVICE: Final[Mapping[int, tuple[ExitCode, str]]] = {
    Code.UNAUTHENTICATED: (
        ExitCode.REFUSED,
        "correct --node and --domain, or bring a fresh token with --token-file, -command or -url",
    ),
    Code.FORBIDDEN: (ExitCode.REFUSED, "ask the operator of the node to permit it"),
    Code.CONFLICT: (ExitCode.REFUSED, "take another --name, or try again later"),
    **{code: (status, "try again") for code, status in _LATER.items()},
}
"""Exit status and advice, by the reply code of the node."""


async def enter(runtime: "Runtime") -> None:
    """Open the session with the node before anything else.

    Raises:
        CommandError: The node does not let the runtime in.
    """
    try:
        await runtime.enter()
    except credentials.SessionError as exc:
        code, advice = _ADVICE.get(exc.code, (ExitCode.FAILED, "see the log of the node"))
        if tls.NOT_ACCEPTED in str(exc):
            advice = failure.certificate_advice(str(exc)) or "name its authority with --ca"
        raise CommandError(f"{exc}; {advice}", code) from exc


# The opening.


async def _check_host(network: Network, host: str, kinds: Container[Kind]) -> None:
    """Listen at a host of this machine for a moment, if any kind of P2P link needs one.

    Args:
        network: Network that opens links.
        host: Name or number of the host.
        kinds: Kinds of links.

    Raises:
        CommandError: The place cannot be listened on.
    """
    if not any(kind in kinds for kind in (Kind.TCP, Kind.WEBSOCKET, Kind.WEBRTC)):
        return
    what = f"links to other runtimes cannot be listened for on {host!r}"
    advice = "name an address of this machine with --p2p-host, or take --p2p none"
    with advise_on(errors.ListenError, what=what, advice=advice):
        async with network.listen(Kind.TCP, f"{host}:0"):
            pass


@asynccontextmanager
async def open_own_runtime(
    config: RuntimeConfig, trace: options.OpenTracer
) -> AsyncIterator["Runtime"]:
    """Run a runtime while the context is open; its session is opened by `enter`.

    A run that could not begin leaves no trace.

    Raises:
        CommandError: No link of another runtime can be accepted at the configured host.
        DialError: No process listens at the URL of the node, or it is no node; within
            `DIAL_TIMEOUT`.
    """
    from actors.runtime.app import open_runtime  # noqa: PLC0415 - help needs no runtime
    from transports.system import open_system_network  # noqa: PLC0415

    async with open_system_network(config.tls) as network:
        await _check_host(network, config.p2p_host, config.kinds)
        if config.node is not None:
            link = await network.dial(Kind.WEBSOCKET, config.node)
            await link.aclose()
        offset, access = ids.clock_offset(), config.catalogues  # Trio's clock runs only now
        if access is not None:
            access = attrs.evolve(access, clock_offset=offset)
        timed = attrs.evolve(config, catalogues=access, clock_offset=offset)
        async with trace(config.name) as tracer, open_runtime(timed, network, tracer) as runtime:
            yield runtime


async def deploy_caller(runtime: "Runtime") -> "Caller":
    """Deploy the hyperty by which a command sends."""
    from actors.hyperties import Caller  # noqa: PLC0415 - as above

    caller = Caller()
    await runtime.deploy("caller", lambda: caller)
    return caller


_MEANING: Final[Mapping[int, ExitCode]] = {
    Code.UNAUTHENTICATED: ExitCode.REFUSED,
    Code.FORBIDDEN: ExitCode.REFUSED,
    Code.BACKEND_TIMEOUT: ExitCode.TIMEOUT,
    **_LATER,
}
"""Exit statuses of answers; other refusals are `ExitCode.FAILED`."""


def exit_code(code: int) -> ExitCode:
    """Return the exit status for a reply code that refuses."""
    return _MEANING.get(code, ExitCode.FAILED)


Work: TypeAlias = Callable[["Runtime"], Awaitable[ExitCode]]

RunTemporary: TypeAlias = Callable[[Work], ExitCode]
"""Opens a runtime, and does some work; returns the exit status.

Raises `CommandError` if the work, or the node, refuses.
"""


def runtime_opener(  # type: ignore[explicit-any] # values of fields
    command: str,
    same: dict[str, Any],
    trace: options.OpenTracer = partial(options.open_trace, None),  # noqa: B008 - none is opened
) -> RunTemporary:
    """Return what opens a runtime of these fields.

    Without a name, one is made of that of the command, and given back to the node at the end.
    """
    config = _named_config(command, same)

    async def open_runtime_for(work: Work) -> ExitCode:
        async with _open_entered(config, trace, keeps_name=bool(same["name"])) as runtime:
            return await work(runtime)

    return lambda work: failure.run(partial(open_runtime_for, work))


PairWork: TypeAlias = Callable[["Runtime", "Runtime"], Awaitable[ExitCode]]

RunPair: TypeAlias = Callable[[PairWork], ExitCode]
"""As `RunTemporary`, with two runtimes."""


def pair_opener(  # type: ignore[explicit-any] # values of fields
    command: str, same: dict[str, Any], trace: options.OpenTracer
) -> RunPair:
    """Return what opens two runtimes of these fields; `-2` is added to the name of the second."""
    given = same["name"]
    first = _named_config(command, same)
    second = _named_config(command, {**same, "name": given and f"{given}-2"})

    async def open_runtimes_for(work: PairWork) -> ExitCode:
        async with (
            _open_entered(first, trace, keeps_name=bool(given)) as runtime,
            _open_entered(second, trace, keeps_name=bool(given)) as other,
        ):
            return await work(runtime, other)

    return lambda work: failure.run(partial(open_runtimes_for, work))


def _named_config(  # type: ignore[explicit-any] # values of fields
    command: str, same: dict[str, Any]
) -> RuntimeConfig:
    name = same["name"] or f"{command}-{secrets.token_hex(4)}"
    return RuntimeConfig(**{**same, "name": name}, ids=ids.fresh_ids())


@asynccontextmanager
async def _open_entered(
    config: RuntimeConfig, trace: options.OpenTracer, *, keeps_name: bool
) -> AsyncIterator["Runtime"]:
    """Run a runtime whose session is open while the context is open.

    Raises:
        CommandError: The node does not let it in, or refuses a search or an object.
    """
    from actors.runtime.discovery.search import SearchError  # noqa: PLC0415 - as above
    from actors.runtime.objects.participant import ObjectError  # noqa: PLC0415

    async with open_own_runtime(config, trace) as runtime:
        await enter(runtime)
        if not keeps_name and config.credentials is not credentials.NO_CREDENTIALS:
            # However it ends: the name is free when its session is over.
            with suppress(credentials.ReleaseError):
                await runtime.release_name()
        try:
            yield runtime
        except (ObjectError, SearchError) as error:
            raise CommandError(f"{error}", exit_code(error.code)) from error


async def until_signal(work: Callable[[], Awaitable[object]]) -> ExitCode:
    """Do some work to its end, or cancel it at SIGINT or SIGTERM.

    Raises:
        Exception: What the work raises.
    """
    from actors.resources import bare_error  # noqa: PLC0415 - as above

    with bare_error(), trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def finish() -> None:
                await work()
                nursery.cancel_scope.cancel()

            nursery.start_soon(finish)
            async for _ in signals:
                nursery.cancel_scope.cancel()
    return ExitCode.OK


REGISTRY: Final = option(
    "DOMAIN",
    text="Domain whose registry is searched [default: that of the node].",
    read=options.DOMAIN,
)


Opener: TypeAlias = Callable[  # type: ignore[explicit-any] # values of fields
    [str, dict[str, Any], options.OpenTracer], RunTemporary | RunPair
]


def temporary_runtime(  # type: ignore[explicit-any] # as `group`
    command: str, name_option: str, opener: Opener = runtime_opener
) -> Any:
    """Declare a parameter as the `RunTemporary` of a command.

    Args:
        command: Name of the command, with which made names begin.
        name_option: Name of the option for the name of the runtime.
        opener: Makes the `RunTemporary`; `pair_opener`: a `RunPair`.
    """
    same = fields(
        RuntimeConfig,
        **OF_NODE,
        name=option(
            text=(
                "Name of the runtime that asks, for a token that is valid for one runtime only "
                "[default: a new one each time]."
            ),
            name=name_option,
            required=False,
            read=options.NAME,
        ),
        topology=option(),
        nodes=FOREIGN,
        **LOGIN,
        identity=option(),
    )

    def make(  # type: ignore[explicit-any] # values of fields
        *,
        same: dict[str, Any] = same,
        places: "Places | None" = options.catalogue_option(flag="--catalogue"),
        trust: Path | None = options.TRUST,
        trace: options.OpenTracer = options.TRACE,
    ) -> RunTemporary | RunPair:
        access = options.catalogue_access(places, trust, f"{same['domain']}.{command}")
        return opener(command, {**same, "catalogues": access}, trace)

    return group(make)
