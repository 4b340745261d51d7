"""Options that several commands share, for TLS among others, and the checks of their values."""

import math
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, tzinfo
from enum import Enum
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, final
from zoneinfo import ZoneInfo

import attrs
import click
from typing_extensions import override

from actors.cli.config_file import PROFILE, log_loaded, warn_unknown
from actors.cli.failure import open_tracer
from actors.cli.group import CommandError, ExitCode, echo
from actors.http.config import HttpConfig
from actors.kit import http_client
from actors.kit.back_ends.ice import IceFileError, IcePlan, read_ice
from actors.kit.http_client import PlainUrlError
from actors.kit.log import Level, Style, configure_log
from actors.kit.trace import Tracer
from actors.node.config import NodeConfig
from actors.policy.store import PolicyConfig
from fsm.policy.terms import Algorithm, Result
from specs.addresses.address import canonical, domain_name, runtime_name, scheme_of
from specs.errors import BadUrlError
from specs.limits.protocol import HTTP_TOKEN_CHARS
from transports.link import DIRECT, Kind
from transports.tls import TlsFileError, client_context, is_open_to_others
from transports.urls import HIGHEST_PORT, read_host_port, read_websocket_url
from transports.webrtc.process import NO_WEBRTC, is_webrtc_installed


@final
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


@final
class Count(click.IntRange):
    """A whole number within a range; the message about a wrong value names the range."""

    @override
    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            high = "on" if self.max is None else f"to {self.max}"
            self.fail(f"{value!r} is no whole number from {self.min} {high}.", param, ctx)


Handler: TypeAlias = Callable[..., int]  # type: ignore[explicit-any] # each command has its own
"""The function of a command, called with the values of its options."""

Settings: TypeAlias = Mapping[str, Any]  # type: ignore[explicit-any] # as click has them
"""What `click.option` takes, by name."""

Option: TypeAlias = Callable[[Handler], Handler]
"""A decorator, as `click.option` returns it."""

NO_LINKS: Final = "none"
"""Value for no P2P links at all."""


Maker: TypeAlias = Callable[..., object]  # type: ignore[explicit-any] # each has its own options
"""Makes what a command gets of the values of several options, its parameters."""


def made_from(
    name: str,
    make: Maker,
    *options: Option,
    names: Mapping[str, str] | None = None,
    kept: Collection[str] = (),
) -> Option:
    """Give a command several options, of which it gets one value.

    Args:
        name: Parameter of the command with that value.
        make: Makes the value; its parameters have the names of the options.
        options: In the order of `--help`.
        names: Parameters of `make` by the names of the options, where they differ.
        kept: Names of options that the command gets, too.
    """
    parameters = names or {one: one for one in signature(make).parameters}

    def decorate(command: Handler) -> Handler:
        @wraps(command)
        def gathered(**values: object) -> int:
            made = make(**{parameter: values[one] for one, parameter in parameters.items()})
            for one in parameters.keys() - kept:
                del values[one]
            return command(**values, **{name: made})

        return with_options(*options)(gathered)

    return decorate


def with_options(*options: Option) -> Option:
    """Give a command several options, in the order of `--help`."""

    def decorate(command: Handler) -> Handler:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(shared: Option | None = None, **declared: Any) -> Any:  # type: ignore[explicit-any] # as `attrs.field` and `click.option`
    """Declare a field of a `Topic`, which is an option of the same name.

    Args:
        shared: The option, if several commands have it.
        declared: What `click.option` takes, without the name; otherwise.
    """
    return attrs.field(metadata={_DECLARED: shared or declared})


_DECLARED: Final = "option"


V = TypeVar("V")
E = TypeVar("E", bound=Enum)


def if_given(
    check: Callable[[click.Context, click.Parameter, V], object] | None,
) -> Callable[[click.Context, click.Parameter, V | None], object]:
    """Return a callback that checks the value of an option only if there is one."""

    def checked(ctx: click.Context, option: click.Parameter, value: V | None) -> object:
        return value if value is None or check is None else check(ctx, option, value)

    return checked


def check_domain(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the name of a domain in lower case; refuse what is none.

    Raises:
        BadParameter: The value is no name of a domain.
    """
    try:
        return domain_name(value)
    except BadUrlError as exc:
        raise click.BadParameter(f"{value!r} is no domain name such as a.example") from exc


def check_address(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return a canonical address; refuse what is none.

    Raises:
        BadParameter: The value is no address.
    """
    try:
        return canonical(value)
    except BadUrlError as exc:
        raise click.BadParameter(str(exc)) from exc


def check_user(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the address of a user, or the name at the identity provider; refuse other addresses.

    Raises:
        BadParameter: The value is the address of something else, or none.
    """
    if "://" not in value:
        return value
    try:
        user = canonical(value)
    except BadUrlError as exc:
        raise click.BadParameter(str(exc)) from exc
    if scheme_of(user) not in {"user", "user-guid"}:
        raise click.BadParameter(f"{value!r} is no user such as user://a.example/bob")
    return user


def check_name(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the name of a runtime; refuse what cannot stand in its address.

    Raises:
        BadParameter: The value cannot be part of the runtime's address.
    """
    try:
        return runtime_name(value)
    except BadUrlError as exc:
        raise click.BadParameter(f"{value!r} is no name such as alice") from exc


def check_node_url(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the URL of a node; refuse what cannot be dialled.

    Raises:
        BadParameter: The value is no URL of a node.
    """
    try:
        read_websocket_url(value)
    except ValueError as exc:
        raise click.BadParameter(f"{value!r} cannot be dialled: {exc}") from exc
    return value


def check_server(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the URL of an HTTP server; refuse what is none.

    Raises:
        BadParameter: The value is no URL of an HTTP server.
    """
    # Slow to import, and only needed for such an option.
    from actors.kit.http_client import HttpUrlError, ServerUrl  # noqa: PLC0415

    try:
        return ServerUrl.read(value).text
    except HttpUrlError as exc:
        raise click.BadParameter(str(exc)) from exc


def check_place(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Return where to listen; refuse what is no place.

    Raises:
        BadParameter: The value is no place to listen at.
    """
    try:
        if value is not None:
            read_host_port(value)
    except ValueError as exc:
        raise click.BadParameter(f"{value!r} is no place to listen: {exc}") from exc
    return value


def places_from(place: str, count: int, option: str) -> list[str]:
    """Return the places of several nodes: the port of each is the one after that of the last.

    Args:
        place: Place of the first one; port 0 picks a free port for each.
        count: How many nodes.
        option: Option that names the place.

    Raises:
        CommandError: There are not as many ports.
    """
    host, port = place.rpartition(":")[0], read_host_port(place)[1]
    if port + count - 1 > HIGHEST_PORT:
        raise CommandError(f"there are no {count} ports from {port} on; correct {option}")
    return [f"{host}:{port + number if port else 0}" for number in range(count)]


def check_foreign(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return URLs by domain; refuse what is no `DOMAIN=URL`.

    Args:
        ctx: Context of the command.
        param: Parameter of the command.
        values: Values of the option.
    """
    urls: dict[str, str] = {}
    for name, url in map(_pair, values):
        domain = check_domain(ctx, param, name)
        urls[domain] = check_node_url(ctx, param, url)
    return urls


def _pair(value: str) -> tuple[str, str]:
    domain, separator, url = value.partition("=")
    if not separator:
        raise click.BadParameter(
            f"{value!r} is no DOMAIN=URL such as b.example=ws://host:4123/link"
        )
    return domain, url


def check_kinds(_: click.Context, __: click.Parameter, value: str) -> tuple[Kind, ...]:
    """Return transports of P2P links, best first; refuse an unknown one.

    Raises:
        BadParameter: A transport is unknown, or not installed.
    """
    if value == NO_LINKS:
        return ()
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in DIRECT:
            raise click.BadParameter(f"{name!r} is none of {', '.join([*DIRECT, NO_LINKS])}")
    if Kind.WEBRTC in names and not is_webrtc_installed():
        raise click.BadParameter(f"{NO_WEBRTC}; pip install 'protofly[webrtc]'")
    return tuple(Kind(name) for name in dict.fromkeys(names))


node_option = click.option(
    "--node",
    required=True,
    metavar="URL",
    callback=check_node_url,
    help="The domain's message node, such as ws://127.0.0.1:4123/link.",
)
"""The option `--node URL`."""

FILE: Final = click.Path(dir_okay=False, path_type=Path)
"""The type of an option that names a file; whether it can be used is found out later."""

FILE_OPTION: Final[Settings] = MappingProxyType({"metavar": "FILE", "type": FILE})
"""What `click.option` takes for an option that names a file."""


def choice(members: Iterable[E], default: E | None = None) -> Settings:
    """Return what `click.option` takes for members of an enum; the command gets one.

    Args:
        members: The enum, or some of its members.
        default: The default; None: there is none.
    """
    known = {str(one.value): one for one in members}

    def read(_: click.Context, __: click.Parameter, value: str | None) -> E | None:
        return None if value is None else known[value]

    shown = None if default is None else str(default.value)
    return {"type": click.Choice(list(known)), "default": shown, "callback": read}


identity_option = click.option(
    "--identity",
    **FILE_OPTION,
    help="File of the runtime's key, made if it is not there; tokens may be bound to it "
    "[default: FILE-identity beside --store FILE, else in memory].",
)
"""The option `--identity FILE`."""


def _check_ice(_: click.Context, __: click.Parameter, value: Path | None) -> IcePlan | None:
    """Return the servers of a file.

    Raises:
        BadParameter: The file cannot be used.
    """
    try:
        return None if value is None else read_ice(value)
    except IceFileError as exc:
        raise click.BadParameter(str(exc)) from exc


ice_option = click.option(
    "--ice",
    **FILE_OPTION,
    callback=_check_ice,
    help="TOML file of servers of STUN and TURN for direct links by WebRTC [default: none].",
)
"""The option `--ice FILE`."""

_trace_option = click.option(
    "--trace",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for the trace of this run, in a folder of its own: "
    "every state change and message hop.",
)
_bodies_option = click.option(
    "--trace-bodies",
    is_flag=True,
    help="Keep the bodies of the framework's own messages in the trace, without secrets, "
    "names of users and what hyperties say.",
)

_names_option = click.option(
    "--trace-names",
    is_flag=True,
    help="Keep the addresses of the users who sent messages in the trace, instead of digests.",
)

OpenTracer: TypeAlias = Callable[[str], AbstractAsyncContextManager[Tracer]]
"""Opens the tracer of a process by its name."""


def _trace(*, trace: Path | None, trace_bodies: bool, trace_names: bool) -> OpenTracer:
    for name, is_given in (("bodies", trace_bodies), ("names", trace_names)):
        if is_given and trace is None:
            raise click.UsageError(f"--trace-{name} needs --trace, the directory of the trace.")
    return partial(open_tracer, trace, bodies=trace_bodies, names=trace_names)


trace_options = made_from("trace", _trace, _trace_option, _bodies_option, _names_option)
"""The options `--trace DIR`, `--trace-bodies` and `--trace-names`, as an `OpenTracer`."""

monitor_option = click.option(
    "--monitor",
    is_flag=True,
    help="Judge the own steps, tables and links and every tenth request while running; "
    "a broken claim is logged and counted.",
)
"""The option `--monitor`."""

_level_option = click.option(
    "--log",
    **choice(Level, Level.WARNING),
    help="Minimum severity of log lines on stderr.",
)

_style_option = click.option(
    "--log-style",
    **choice(Style, Style.AUTO),
    help="Format of log lines; auto is console on a terminal, else text.",
)


def log_option(command: Handler) -> Handler:
    """Give a command `--log LEVEL` and `--log-style STYLE`: in force before it runs."""

    @wraps(command)
    def logged(*, log: Level, log_style: Style, **values: object) -> int:
        configure_log(log, log_style)
        ctx = click.get_current_context()
        log_loaded(ctx)
        warn_unknown(ctx)
        return command(**values)

    return _level_option(_style_option(logged))


insecure_option = click.option(
    "--insecure",
    is_flag=True,
    help="Dial nodes on other machines without TLS: others can read and alter messages.",
)
"""The option `--insecure`."""

_ca_option = click.option(
    "--ca",
    **FILE_OPTION,
    help="Trust the authorities in this PEM file when nodes are dialled by wss: "
    "[default: those of the operating system].",
)
_cert_option = click.option(
    "--tls-cert",
    **FILE_OPTION,
    help="Show the certificate in this PEM file to a node that asks for one.",
)
_key_option = click.option(
    "--tls-key", **FILE_OPTION, help="PEM file with the private key of --tls-cert."
)


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
        context = client_context(ca, cert, key)
    except TlsFileError as exc:
        options = {"--ca": ca, "--tls-cert": cert, "--tls-key": key}
        raise wrong_file(exc, options) from exc
    if key is not None and is_open_to_others(key):
        echo(f"protofly: {open_key(key)}", err=True)
    return context


def open_key(key: Path) -> str:
    """Return the warning about a key that other users have rights on."""
    return f"{key} can be read by others; chmod 600 {key}"


def wrong_file(error: TlsFileError, options: Mapping[str, Path | None]) -> CommandError:
    """Return the sentence about a file of TLS that cannot be used.

    Args:
        error: What is wrong with it.
        options: The files by the options that name them.
    """
    named = [option for option, file in options.items() if file == error.file]
    return CommandError(f"{error}; correct {' or '.join(named)}")


def more_trust(ca: Path | None) -> ssl.SSLContext | None:
    """Return what servers of others are dialled with; None: as the operating system has it.

    Args:
        ca: PEM file of authorities that are trusted beside those of the operating system.

    Raises:
        CommandError: The file cannot be used.
    """
    if ca is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except (OSError, ssl.SSLError) as exc:
        raise CommandError(f"cannot use the authorities in {ca}: {exc}; correct --ca") from exc
    return context


def check_plain(urls: Iterable[str], *, insecure: bool) -> None:
    """Refuse nodes on other machines that are dialled without TLS.

    Args:
        urls: What is dialled.
        insecure: Whether that is wanted; then a warning is logged.

    Raises:
        CommandError: It is not.
    """
    try:
        http_client.check_plain(urls, insecure=insecure)
    except PlainUrlError as exc:
        advice = "dial wss:, or add --insecure"
        raise CommandError(f"{exc.fault}; {advice}", ExitCode.USAGE) from exc


def client_tls_options(*routes: str) -> Option:
    """Add the options for dialling nodes with TLS; the command gets `tls` and `insecure`.

    Args:
        routes: Parameters of the command with the URLs that it dials beside `node`, by domain.
    """
    kept = ("insecure", "node", *routes)

    def make(
        *,
        ca: Path | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        insecure: bool,
        node: str | None,
        **dialled: Mapping[str, str],
    ) -> ssl.SSLContext | None:
        more = [url for urls in dialled.values() for url in urls.values()]
        check_plain([*filter(None, [node]), *more], insecure=insecure)
        return client_tls(ca, tls_cert, tls_key)

    names = {one: one for one in ("ca", "tls_cert", "tls_key", *kept)}
    options = (_ca_option, _cert_option, _key_option, insecure_option)
    return made_from("tls", make, *options, names=names, kept=kept)


def profile_option(profiles: Mapping[str, Mapping[str, object]]) -> Option:
    """Make the option `--profile NAME`; a profile sets the defaults of other options.

    A file of options, too, wins over a profile.

    Args:
        profiles: The options of each profile, by their names in Python.
    """

    def read(ctx: click.Context, _: click.Parameter, name: str | None) -> str | None:
        if name is not None:
            ctx.default_map = {**profiles[name], **(ctx.default_map or {})}
        return name

    return click.option(
        f"--{PROFILE}",
        type=click.Choice(list(profiles)),
        is_eager=True,
        callback=read,
        help="A named set of options; each can still be set by itself.",
    )


# Options of the node that belong together: one file, one frozen object, one decorator each.


@attrs.frozen
class Topic(ABC):
    """The options of one topic of a node."""

    @abstractmethod
    def applied(self, config: NodeConfig) -> NodeConfig:
        """Return how the node is to be with these options.

        Raises:
            CommandError: The options contradict each other, or a file they name is wrong.
        """


def topic_options(*kinds: type[Topic] | Option) -> Option:
    """Give a command the options of topics, of which it gets `topics`, and options between them.

    Args:
        kinds: In the order of `--help`; the fields of a topic are declared by `option`.
    """
    topics = [kind for kind in kinds if isinstance(kind, type)]
    names = {field.name: field.name for kind in topics for field in attrs.fields(kind)}

    def make(**values: object) -> tuple[Topic, ...]:
        return tuple(
            kind(**{field.name: values[field.name] for field in attrs.fields(kind)})
            for kind in topics
        )

    options = [
        with_options(*map(_declared, attrs.fields(kind))) if isinstance(kind, type) else kind
        for kind in kinds
    ]
    return made_from("topics", make, *options, names=names)


def _declared(field: "attrs.Attribute[object]") -> Option:
    declared = field.metadata[_DECLARED]
    if not isinstance(declared, dict):
        shared: Option = declared
        return shared
    return click.option(f"--{field.name.replace('_', '-')}", **declared)


# Options of health and metrics over HTTP, of a node or a runtime.

HTTP_OPTIONS: Final = (
    click.option(
        "--http",
        metavar="HOST:PORT",
        callback=check_place,
        help="Address of /healthz, /readyz, /metrics and, of a node, /dashboard; port 0 picks a "
        "free one [default: off].",
    ),
    click.option(
        "--http-token-file",
        **FILE_OPTION,
        help="File with the token that readers of /metrics and /dashboard must send.",
    ),
)
"""`--http` and `--http-token-file`, in the order of `--help`."""


def http_config(http: str | None, http_token_file: Path | None) -> HttpConfig | None:
    """Return the configuration that the options state; None: no HTTP service.

    Args:
        http: Value of the option.
        http_token_file: Value of the option.

    Raises:
        CommandError: The token cannot be used, or protects nothing.
    """
    if http is not None:
        return HttpConfig(http, None if http_token_file is None else _token(http_token_file))
    if http_token_file is not None:
        raise CommandError("--http-token-file protects metrics, but none are served; add --http")
    return None


def _token(file: Path) -> bytes:
    try:
        token = file.read_bytes().strip()
    except OSError as exc:
        raise CommandError(
            f"cannot read {file}: {exc.strerror}; name another file with --http-token-file"
        ) from exc
    if len(token) < HTTP_TOKEN_CHARS or b"\n" in token:
        raise CommandError(
            f"{file} holds no token: one line of at least {HTTP_TOKEN_CHARS} characters "
            "is wanted; make one with: openssl rand -hex 32"
        )
    return token


http_options = made_from("http", http_config, *HTTP_OPTIONS)
"""The options `--http` and `--http-token-file`, as an `HttpConfig` or None."""

# Options of policies, of a node or a runtime.

DEFAULTS: Final = (Result.PERMIT, Result.DENY)


def check_zone(_: click.Context, __: click.Parameter, value: str) -> tzinfo:
    """Return a time zone; refuse what is none.

    Raises:
        BadParameter: It is none.
    """
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError) as exc:
        raise click.BadParameter(f"{value!r} is no time zone such as Europe/Berlin") from exc


def _policies(
    policy: tuple[Path, ...],
    policy_default: Result,
    policy_combining: Algorithm,
    policy_zone: tzinfo,
) -> PolicyConfig:
    return PolicyConfig(
        files=policy, combining=policy_combining, default=policy_default, zone=policy_zone
    )


policy_options = made_from(
    "policies",
    _policies,
    click.option(
        "--policy",
        metavar="FILE",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Judge messages by this policy file, or by all *.toml and *.json of a folder; "
        "repeatable.",
    ),
    click.option(
        "--policy-default",
        **choice(DEFAULTS, Result.PERMIT),
        help="Decision about messages to which no policy applies.",
    ),
    click.option(
        "--policy-combining",
        **choice(Algorithm, Algorithm.DENY_OVERRIDES),
        help="How the results of several policy files combine.",
    ),
    click.option(
        "--policy-zone",
        metavar="ZONE",
        default="UTC",
        callback=check_zone,
        help="Time zone of the times in policies, such as Europe/Berlin.",
    ),
)
"""The options of policies, as a `PolicyConfig`; without a file, others may add policies."""
