"""Options of commands, each declared once: as a parameter with its type, default and help."""

import math
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

import click
import orjson
from typing_extensions import override

from actors.cli import config_file, failure
from actors.cli.group import CommandError, ExitCode, advise_on, echo
from actors.http.config import HttpConfig
from actors.kit.back_ends.ice import read_ice
from actors.kit.log import Level, Style, configure_log
from actors.policy.store import PolicyConfig
from fsm.commands import parameters
from fsm.commands.parameters import FILE, FOLDER, Make, Maker, group, option
from fsm.policy.terms import Algorithm, Result
from specs.addresses import address
from specs.errors import ProtoflyError
from specs.jsonvalue import Json
from specs.limits.protocol import HTTP_TOKEN_CHARS
from transports import link, tls, urls
from transports.webrtc.extra import NO_WEBRTC, is_webrtc_installed

if TYPE_CHECKING:
    from actors.catalogue.client import CatalogueAccess
    from actors.catalogue.source import Places
    from actors.catalogue.trust_file import Trust
    from actors.kit.trace import Tracer


class Quantity(click.FloatRange):
    """A number within a range; `nan` and `inf`, which a range does not exclude, are refused."""

    @override
    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number that anything can have.", param, ctx)
        return number


class Count(click.IntRange):
    """A whole number within a range; the message about a wrong value names the range."""

    @override
    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            high = "on" if self.max is None else f"to {self.max}"
            self.fail(f"{value!r} is no whole number from {self.min} {high}.", param, ctx)


def define_command(  # type: ignore[explicit-any] # as there
    name: str,
    of: click.Group | None = None,
    *,
    has_log: bool = False,
    meanings: failure.Meanings = (),
    **settings: Any,
) -> Callable[[Maker], click.Command]:
    """Make a command of a function, as `fsm.commands.parameters` does; its errors become sentences.

    Args:
        name: Name of the command.
        of: Group of the command; None: none.
        has_log: Whether it has a file of options and a log, configured before it runs.
        meanings: Exit status and advice for errors that come out of it, beside `failure.meanings`.
        settings: What `click.Command` takes beside.
    """
    log_options, configure = group(_configure_log).compile()

    def run(values: Mapping[str, object], make: Make) -> object:
        if has_log:
            configure(values)
        try:
            return make(values)
        except ProtoflyError as error:
            if known := failure.match_meaning(error, (*meanings, *failure.meanings())):
                raise known from error
            raise

    more = [config_file.CONFIG_OPTION, *log_options] if has_log else []
    return parameters.define_command(name, of, more=more, run=run, **settings)


# What values are read by.

R = TypeVar("R")


def reader_of(wrong: str, read: Callable[[str], R], *errors: type[Exception]) -> Callable[[str], R]:
    """Return a reader that refuses what it cannot read, with a sentence.

    Args:
        wrong: The sentence, in which the text and the error can stand.
        read: Reads a text.
        errors: Errors of `read` beside `ProtoflyError` and `ValueError`.
    """
    refused: tuple[type[Exception], ...] = (ProtoflyError, ValueError, *errors)

    def read_or_refuse(text: str) -> R:
        try:
            return read(text)
        except refused as exc:
            raise click.BadParameter(wrong.format(text, exc)) from exc

    return read_or_refuse


def text_checked_by(check: Callable[[str], object]) -> Callable[[str], str]:
    """Return a reader of texts as they are, for which a check raises nothing."""

    def read(text: str) -> str:
        check(text)
        return text

    return read


def read_json(text: str) -> Json:
    """Return the value of JSON text.

    Raises:
        BadParameter: The text is no JSON.
    """
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise click.BadParameter(f"{text!r} is no JSON: {exc}") from exc
    return value


def read_user(text: str) -> str:
    """Return the address of a user, or the name at the identity provider; refuse other addresses.

    Raises:
        BadParameter: The text is the address of something else.
        BadUrlError: The text is no address.
    """
    if "://" not in text:
        return text
    user = address.canonical(text)
    if address.scheme_of(user) not in {"user", "user-guid"}:
        raise click.BadParameter(f"{text!r} is no user such as user://a.example/bob")
    return user


def pair(text: str, kind: str, example: str) -> tuple[str, str]:
    """Return a domain and what is named for it, if a text is of the form `DOMAIN=KIND`.

    Raises:
        BadParameter: It is not.
    """
    name, _, value = text.partition("=")
    if not value:
        raise click.BadParameter(f"{text!r} is no DOMAIN={kind} such as b.example={example}")
    return DOMAIN(name), value


def read_route(text: str) -> tuple[str, str]:
    """Return a domain and the URL of its node.

    Raises:
        BadParameter: The text is no `DOMAIN=URL`.
    """
    domain, url = pair(text, "URL", "ws://host:4123/link")
    return domain, NODE_URL(url)


DOMAIN: Final = reader_of("{!r} is no domain name such as a.example", address.domain_name)
NAME: Final = reader_of("{!r} is no name such as alice", address.runtime_name)
NODE_URL: Final = reader_of("{!r} cannot be dialled: {}", text_checked_by(urls.read_websocket_url))
PLACE: Final = reader_of("{!r} is no place to listen: {}", text_checked_by(urls.read_host_port))
ZONE: Final = reader_of(
    "{!r} is no time zone such as Europe/Berlin",
    lambda text: UTC if text == "UTC" else ZoneInfo(text),
    KeyError,
    OSError,
)


def places_from(place: str, count: int, option: str) -> list[str]:
    """Return the places of several nodes: the port of each is the one after that of the last.

    Args:
        place: Place of the first one; port 0 picks a free port for each.
        count: How many nodes.
        option: Option that names the place.

    Raises:
        CommandError: There are not as many ports.
    """
    host, port = place.rpartition(":")[0], urls.read_host_port(place)[1]
    if port + count - 1 > urls.HIGHEST_PORT:
        raise CommandError(f"there are no {count} ports from {port} on; correct {option}")
    return [f"{host}:{port + number if port else 0}" for number in range(count)]


def read_kinds(text: str) -> tuple[link.Kind, ...]:
    """Return transports of P2P links, best first; `none` stands for no links at all.

    Raises:
        BadParameter: A transport is unknown, or not installed.
    """
    if text == "none":
        return ()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in link.DIRECT:
            raise click.BadParameter(f"{name!r} is none of {', '.join([*link.DIRECT, 'none'])}")
    if link.Kind.WEBRTC in names and not is_webrtc_installed():
        raise click.BadParameter(f"{NO_WEBRTC}; pip install '.[webrtc]' in a checkout")
    return tuple(link.Kind(name) for name in dict.fromkeys(names))


# Options that several commands share.

ICE: Final = option(
    text="TOML file of servers of STUN and TURN for direct links by WebRTC [default: none].",
    type=FILE,
    read=read_ice,
)

CA: Final = option(
    text=(
        "Trust the authorities in this PEM file when nodes are dialled by wss: "
        "[default: those of the operating system]."
    )
)

JSON_LINES: Final = option(text="Print one JSON object per line.", flag="--json")

OpenTracer: TypeAlias = Callable[[str], "AbstractAsyncContextManager[Tracer]"]
"""Opens the tracer of a process by its name."""


def open_trace(
    directory: Path | None, name: str, *, bodies: bool = False, names: bool = False
) -> "AbstractAsyncContextManager[Tracer]":
    """Open the tracer of a process by its name; see `open_tracer`."""
    from actors.resources import open_tracer  # noqa: PLC0415 - slow to import

    return open_tracer(directory, name, bodies=bodies, names=names)


def _trace(
    *,
    trace: Path | None = option(type=FOLDER),
    trace_bodies: bool = option(),
    trace_names: bool = option(),
) -> OpenTracer:
    """Return what opens the tracer of a process by its name.

    Args:
        trace: Directory for the trace of this run, in a folder of its own: every state change and
            message hop.
        trace_bodies: Keep the bodies of the framework's own messages in the trace, without secrets,
            names of users and values of hyperties.
        trace_names: Keep the addresses of the users who sent messages in the trace, instead of
            digests.
    """
    for name, is_given in (("bodies", trace_bodies), ("names", trace_names)):
        if is_given and trace is None:
            raise click.UsageError(f"--trace-{name} needs --trace, the directory of the trace.")
    return partial(open_trace, trace, bodies=trace_bodies, names=trace_names)


TRACE: Final = group(_trace)
"""The options of the trace, as an `OpenTracer`."""


def _configure_log(
    *, log: Level = option(default=Level.WARNING), log_style: Style = option(default=Style.AUTO)
) -> None:
    """Configure the log, and log what the file of options was.

    Args:
        log: Minimum severity of log lines on stderr.
        log_style: Format of log lines; auto is console on a terminal, else text.
    """
    configure_log(log, log_style)
    ctx = click.get_current_context()
    config_file.log_loaded(ctx)
    config_file.warn_unknown(ctx)


def client_tls(
    ca: Path | None, cert: Path | None = None, key: Path | None = None
) -> ssl.SSLContext | None:
    """Return what nodes are dialled with; None: as the operating system has it.

    Args:
        ca: PEM file of the authorities that are trusted.
        cert: PEM file of the certificate to show.
        key: PEM file of its key.

    Raises:
        CommandError: A file cannot be used, or one of two is missing.
    """
    if (cert is None) is not (key is None):
        raise CommandError("--tls-cert and --tls-key go together; add the other one")
    if ca is None and cert is None:
        return None
    try:
        context = tls.client_context(ca, cert, key)
    except tls.TlsFileError as exc:
        raise wrong_file(exc, {"--ca": ca, "--tls-cert": cert, "--tls-key": key}) from exc
    if key is not None and tls.is_open_to_others(key):
        echo(f"protofly: {open_key(key)}", err=True)
    return context


def open_key(key: Path) -> str:
    """Return the warning about a key that other users have rights on."""
    return f"{key} can be read by others; chmod 600 {key}"


def wrong_file(error: tls.TlsFileError, options: Mapping[str, Path | None]) -> CommandError:
    """Return the sentence about a file of TLS that cannot be used.

    Args:
        error: What is wrong with it.
        options: The files by the options that name them.
    """
    named = [option for option, file in options.items() if file == error.file]
    return CommandError(f"{error}; correct {' or '.join(named)}")


def check_plain(dialled: Iterable[str], *, insecure: bool) -> None:
    """Refuse nodes on other machines that are dialled without TLS.

    Args:
        dialled: URLs of the nodes.
        insecure: Whether that is wanted; then a warning is logged.

    Raises:
        CommandError: It is not.
    """
    from actors.kit import http_client  # noqa: PLC0415 - slow to import, as all of HTTP

    try:
        http_client.check_plain(dialled, insecure=insecure)
    except http_client.PlainUrlError as exc:
        advice = "dial wss: or https:, or add --insecure"
        raise CommandError(f"{exc.fault}; {advice}", ExitCode.USAGE) from exc


def _client_tls(
    *,
    ca: Path | None = CA,
    tls_cert: Path | None = option(),
    tls_key: Path | None = option(),
    insecure: bool,
    node: str | None,
    foreign: Mapping[str, str] | None,
) -> ssl.SSLContext | None:
    """Return what nodes are dialled with; None: as the operating system has it.

    Args:
        tls_cert: Show the certificate in this PEM file to a node that asks for one.
        tls_key: PEM file with the private key of --tls-cert.
    """
    check_plain([*filter(None, [node]), *(foreign or {}).values()], insecure=insecure)
    return client_tls(ca, tls_cert, tls_key)


CLIENT_TLS: Final = group(_client_tls)
"""The options for dialling nodes with TLS; the command has `insecure`, `node` and maybe `foreign`.
"""


def _read_collector(url: str) -> str:
    from actors.kit.otlp import read_collector  # noqa: PLC0415 - slow to import

    try:
        return read_collector(url)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


OTLP: Final = {
    "otlp": option("URL", read=_read_collector),
    "otlp_sample": option("NUMBER", type=Count(1)),
}
"""Options for fields about spans, of a node and of a runtime."""


def http_config(
    *, http: str | None = option("HOST:PORT", read=PLACE), http_token_file: Path | None = option()
) -> HttpConfig | None:
    """Return the configuration of health and metrics over HTTP; None: no HTTP service.

    Args:
        http: Address of /healthz, /readyz, /metrics and, of a node, /dashboard; port 0 picks a free
            one [default: off].
        http_token_file: File with the token that readers of /metrics and /dashboard must send.

    Raises:
        CommandError: The token cannot be used, or protects nothing.
    """
    if http is not None:
        return HttpConfig(http, None if http_token_file is None else read_token(http_token_file))
    if http_token_file is not None:
        raise CommandError("--http-token-file protects metrics, but none are served; add --http")
    return None


def read_token(file: Path) -> bytes:
    """Return the token of readers of metrics and dashboard.

    Raises:
        CommandError: The file cannot be read, or holds no token.
    """
    with advise_on(
        OSError, what=f"cannot read {file}", advice="name another file with --http-token-file"
    ):
        token = file.read_bytes().strip()
    if len(token) < HTTP_TOKEN_CHARS or b"\n" in token:
        raise CommandError(
            f"{file} holds no token: one line of at least {HTTP_TOKEN_CHARS} characters "
            "is wanted; make one with: openssl rand -hex 32"
        )
    return token


DEFAULTS: Final = (Result.PERMIT, Result.DENY)
"""Decisions about messages to which no policy applies."""


def _policies(
    *,
    policy: tuple[Path, ...] = option("FILE", type=click.Path(path_type=Path)),
    policy_default: Result = option(members=DEFAULTS, default=Result.PERMIT),
    policy_combining: Algorithm = option(default=Algorithm.DENY_OVERRIDES),
    policy_zone: tzinfo = option("ZONE", default="UTC", read=ZONE),
) -> PolicyConfig:
    """Return the policies; without a file, others may add some.

    Args:
        policy: Judge messages by this policy file, or by all *.toml and *.json of a folder;
            repeatable.
        policy_default: Decision about messages to which no policy applies.
        policy_combining: How the results of several policy files combine.
        policy_zone: Time zone of the times in policies, such as Europe/Berlin.
    """
    return PolicyConfig(
        files=policy, combining=policy_combining, default=policy_default, zone=policy_zone
    )


POLICIES: Final = group(_policies)
"""The options of policies, as a `PolicyConfig`; without a file, others may add policies."""


# Catalogues of other domains, and trust in them.


def _read_places(texts: tuple[str, ...]) -> "Places | None":
    from actors.catalogue.source import read_places  # noqa: PLC0415 - as above

    return read_places(texts) if texts else None


catalogue_option: Final = partial(
    option,
    "[DOMAIN=]WHERE",
    text=(
        "Directory or URL where a domain describes how it is reached, such as "
        "b.example=https://catalogue.b.example; repeatable. Without DOMAIN it serves all "
        "other domains, whose name replaces {domain} in it."
    ),
    multiple=True,
    gather=_read_places,
)

TRUST: Final = option(
    text=(
        "TOML file of trusted domains, publishers and identity providers; the newest "
        "versions that catalogues have shown are kept beside it."
    )
)


def catalogue_access(
    places: "Places | None", trust: Path | None, name: str
) -> "CatalogueAccess | None":
    """Return the access to catalogues; None: no option asks for it.

    `name` names the store of what was accepted; no two processes may share one.

    Raises:
        CommandError: One option is there without the other.
        TrustFileError: The file is wrong.
    """
    if places is None and trust is None:
        return None
    if places is None or trust is None:
        raise CommandError(
            "--catalogue and --trust go together: where stubs of other domains are described, "
            "and trusted signers; add the other one"
        )
    # Signatures are slow to import, and not needed without fetching.
    from actors.catalogue.client import CatalogueAccess  # noqa: PLC0415
    from actors.catalogue.memory import FolderStore  # noqa: PLC0415
    from actors.catalogue.trust_file import read_trust  # noqa: PLC0415

    store = FolderStore(trust.with_name(f"{trust.name}.seen") / name)
    return CatalogueAccess(places, read_trust(trust), store)


def load_trust(path: Path | None) -> "Trust | None":
    """Return whom a trust file trusts; None: there is no file.

    Raises:
        TrustFileError: The file is wrong.
    """
    from actors.catalogue.trust_file import read_trust  # noqa: PLC0415 - as above

    return None if path is None else read_trust(path)
