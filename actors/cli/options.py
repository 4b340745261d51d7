"""Options that several commands share, for TLS among others, and the checks of their values."""

import math
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, tzinfo
from functools import partial, wraps
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, final
from zoneinfo import ZoneInfo

import attrs
import click
from typing_extensions import override

from actors.cli.config_file import PROFILE, log_loaded, warn_unknown
from actors.cli.failure import open_tracer
from actors.cli.group import CommandError, ExitCode, echo
from actors.http.service import HttpConfig
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

Option: TypeAlias = Callable[[Handler], Handler]
"""A decorator, as `click.option` returns it."""

NO_LINKS: Final = "none"
"""Value for no P2P links at all."""


V = TypeVar("V")


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

identity_option = click.option(
    "--identity",
    metavar="FILE",
    type=FILE,
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
    metavar="FILE",
    type=FILE,
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


def trace_options(command: Handler) -> Handler:
    """Add `--trace DIR`, `--trace-bodies` and `--trace-names`; the command gets an `OpenTracer`."""

    @wraps(command)
    def traced(
        *, trace: Path | None, trace_bodies: bool, trace_names: bool, **values: object
    ) -> int:
        for option, is_given in (("bodies", trace_bodies), ("names", trace_names)):
            if is_given and trace is None:
                why = f"--trace-{option} needs --trace, the directory of the trace."
                raise click.UsageError(why)
        opened = partial(open_tracer, trace, bodies=trace_bodies, names=trace_names)
        return command(trace=opened, **values)

    return _trace_option(_bodies_option(_names_option(traced)))


monitor_option = click.option(
    "--monitor",
    is_flag=True,
    help="Judge the own steps, tables and links and every tenth request while running; "
    "a broken claim is logged and counted.",
)
"""The option `--monitor`."""

_level_option = click.option(
    "--log",
    type=click.Choice([str(level) for level in Level]),
    default=str(Level.WARNING),
    show_default=True,
    help="Minimum severity of log lines on stderr.",
)

_style_option = click.option(
    "--log-style",
    type=click.Choice([str(style) for style in Style]),
    default=str(Style.AUTO),
    show_default=True,
    help="Format of log lines; auto is console on a terminal, else text.",
)


def log_option(command: Handler) -> Handler:
    """Give a command `--log LEVEL` and `--log-style STYLE`: in force before it runs."""

    @wraps(command)
    def logged(*, log: str, log_style: str, **values: object) -> int:
        configure_log(Level(log), Style(log_style))
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
    metavar="FILE",
    type=FILE,
    help="Trust the authorities in this PEM file when nodes are dialled by wss: "
    "[default: those of the operating system].",
)
_cert_option = click.option(
    "--tls-cert",
    metavar="FILE",
    type=FILE,
    help="Show the certificate in this PEM file to a node that asks for one.",
)
_key_option = click.option(
    "--tls-key", metavar="FILE", type=FILE, help="PEM file with the private key of --tls-cert."
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

    def adding(command: Handler) -> Handler:
        @wraps(command)
        def secured(
            *,
            ca: Path | None,
            tls_cert: Path | None,
            tls_key: Path | None,
            insecure: bool,
            node: str | None,
            **values: object,
        ) -> int:
            # A parameter that the command does not have is an error, so none is left out.
            more = [url for name in routes for url in _urls(values[name])]
            check_plain([*filter(None, [node]), *more], insecure=insecure)
            tls = client_tls(ca, tls_cert, tls_key)
            return command(node=node, tls=tls, insecure=insecure, **values)

        return _ca_option(_cert_option(_key_option(insecure_option(secured))))

    return adding


def _urls(routes: object) -> Iterable[str]:
    if not isinstance(routes, dict):
        raise TypeError("routes are URLs by domain")
    return routes.values()


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


def topics() -> list[type[Topic]]:
    """Return every topic there is, of the modules that were imported."""
    # What attrs made the slotted classes from may still be there; it has no fields of its own.
    return [kind for kind in Topic.__subclasses__() if "__attrs_attrs__" in vars(kind)]


def topic_options(kind: type[Topic], *options: Option) -> Option:
    """Give a command the options of a topic; it gets `topics`, a tuple in order of decorators.

    Args:
        kind: A frozen attrs class; each field has the name of one option's parameter.
        options: In the order of `--help`.
    """
    names = [field.name for field in attrs.fields(kind)]

    def decorate(command: Handler) -> Handler:
        @wraps(command)
        def gathered(*, topics: tuple[Topic, ...] = (), **values: object) -> int:
            own = {name: values.pop(name) for name in names}
            return command(topics=(*topics, kind(**own)), **values)

        made: Handler = gathered
        for option in reversed(options):
            made = option(made)
        return made

    return decorate


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
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File with the token that readers of /metrics and /dashboard must send.",
    ),
)
"""`--http` and `--http-token-file`, in the order of `--help`."""


def http_config(place: str | None, token_file: Path | None) -> HttpConfig | None:
    """Return the configuration that the options state; None: no HTTP service.

    Args:
        place: Value of `--http`.
        token_file: Value of `--http-token-file`.

    Raises:
        CommandError: The token cannot be used, or protects nothing.
    """
    if place is not None:
        return HttpConfig(place, None if token_file is None else _token(token_file))
    if token_file is not None:
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


def http_options(command: Handler) -> Handler:
    """Add `--http` and `--http-token-file`; the command gets `http`, an `HttpConfig` or None."""

    @wraps(command)
    def served(*, http: str | None, http_token_file: Path | None, **values: object) -> int:
        return command(http=http_config(http, http_token_file), **values)

    made: Handler = served
    for option in reversed(HTTP_OPTIONS):
        made = option(made)
    return made


# Options of policies, of a node or a runtime.

DEFAULTS: Final = (str(Result.PERMIT), str(Result.DENY))


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


POLICY_OPTIONS: Final[tuple[Option, ...]] = (
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
        type=click.Choice(DEFAULTS),
        default=DEFAULTS[0],
        show_default=True,
        help="Decision about messages to which no policy applies.",
    ),
    click.option(
        "--policy-combining",
        type=click.Choice([str(one) for one in Algorithm]),
        default=str(Algorithm.DENY_OVERRIDES),
        show_default=True,
        help="How the results of several policy files combine.",
    ),
    click.option(
        "--policy-zone",
        metavar="ZONE",
        default="UTC",
        show_default=True,
        callback=check_zone,
        help="Time zone of the times in policies, such as Europe/Berlin.",
    ),
)
"""The options of policies."""


def policies_of(
    files: tuple[Path, ...], default: str, combining: str, zone: tzinfo
) -> PolicyConfig:
    """Return the policies that these options state; without a file, others may add policies.

    Args:
        files: Policy files and folders of them.
        default: Decision about messages to which no policy applies.
        combining: How the results of several files combine.
        zone: Time zone of the times in policies.
    """
    return PolicyConfig(
        files=files, combining=Algorithm(combining), default=Result(default), zone=zone
    )


def policy_options(command: Handler) -> Handler:
    """Add the options of policies; the command gets `policies`."""

    @wraps(command)
    def gathered(
        *,
        policy: tuple[Path, ...],
        policy_default: str,
        policy_combining: str,
        policy_zone: tzinfo,
        **values: object,
    ) -> int:
        policies = policies_of(policy, policy_default, policy_combining, policy_zone)
        return command(policies=policies, **values)

    made: Handler = gathered
    for option in reversed(POLICY_OPTIONS):
        made = option(made)
    return made
