"""`python -m actors node`: the message node of a domain."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import attrs
import click
import trio
from typing_extensions import override

from actors.cli.config_file import config_option
from actors.cli.failure import Needs, run, say_ready
from actors.cli.group import CommandError, echo
from actors.cli.lifetime import serve, until_parent_ends
from actors.cli.options import (
    FILE_OPTION,
    OpenTracer,
    Quantity,
    Topic,
    check_domain,
    check_place,
    choice,
    log_option,
    monitor_option,
    option,
    places_from,
    policy_options,
    profile_option,
    topic_options,
    trace_options,
)
from actors.cli.reloading import reloading
from actors.commands.config import read_signer
from actors.commands.node.engine import EngineOptions
from actors.commands.node.foreign import CatalogueOptions, ConnectorOptions, ForeignOptions
from actors.commands.node.limits import http_options, limit_options, origin_option
from actors.commands.node.tls import Certificate, TlsOptions
from actors.kit.database import flaw_of
from actors.kit.ids import clock_offset, fresh_ids
from actors.kit.log import get_logger, shared_fields
from actors.node.app import Node, open_node
from actors.node.config import NodeConfig
from actors.node.errors import RegistryFileError, StateFileError
from actors.node.login.provider import Admission, Login, Nobody, ProviderMaker
from actors.node.registry.record_file import FORM as RECORDS
from actors.node.state.file import FORM as STATE
from actors.policy.store import read_policies
from fsm.registry.node_rights import Names, Observation
from specs.jsonvalue import JsonObject
from specs.limits.node import SESSION_LIFE, TOKEN_LIFE
from transports.system import open_system_network
from transports.tls import TlsFileError
from transports.urls import is_plain

_log = get_logger("actors.node")


def rereads(
    node: Node, certificates: Sequence[Certificate]
) -> Iterator[Callable[[], Awaitable[object]]]:
    """Return what reads the files of a node again: its certificates, then its policies.

    Args:
        node: The node.
        certificates: The certificates of its listeners.
    """
    for one in certificates:
        yield partial(_renew, one)
    if node.has_policies:
        yield node.reload_policies


async def _renew(certificate: Certificate) -> None:
    try:
        certificate.reread()
    except TlsFileError as exc:
        _log.error("certificates are not read again", reason=str(exc))
    else:
        _log.info("certificates were read again")
    await trio.lowlevel.checkpoint()


# Options of the node's login: whose tokens open sessions, and for how long.

if TYPE_CHECKING:
    from actors.keys.key_source import KeyFile, KeySource, KeyUrl


_URLS: Final = ("http://", "https://")

_LOCKED: Final = (
    "no runtime can open a session at this node: it has no keys to verify logins "
    "with; name them with --jwks, or admit all runtimes with --allow-legacy"
)


@final
@attrs.frozen
class LoginOptions(Topic):
    """The keys that verify logins, the requirements on tokens, and the keys of the domain."""

    jwks: tuple[str, ...] = option(
        metavar="FILE|URL",
        multiple=True,
        help="Public keys that verify login tokens, as a JSON Web Key Set; a file is read again "
        "when it changes. Repeatable: one for each --issuer, in the same order. Without it, "
        "sessions can be opened only if --allow-legacy is given.",
    )
    issuer: tuple[str, ...] = option(
        metavar="TEXT",
        multiple=True,
        help="Accept only tokens of this issuer; repeatable [default: all that have a key].",
    )
    audience: tuple[str, ...] = option(
        metavar="TEXT",
        multiple=True,
        help="Accept tokens for this audience, beside the domain and its node; repeatable.",
    )
    client: tuple[str, ...] = option(
        metavar="TEXT",
        multiple=True,
        help="Accept tokens that were issued to this client of the identity provider (their claim "
        "azp), beside those that name an audience there; repeatable.",
    )
    max_token_life: float = option(
        metavar="SECONDS",
        type=Quantity(min=1),
        default=TOKEN_LIFE,
        help="Refuse tokens that live longer, from when they were issued.",
    )
    session_life: float = option(
        metavar="SECONDS",
        type=Quantity(min=1),
        default=SESSION_LIFE,
        help="Seconds after which a session needs a new login.",
    )
    used_tokens: Path | None = option(
        **FILE_OPTION,
        help="File of used tokens, for nodes that share it [default: in the file of --state].",
    )
    domain_key: tuple[Path, ...] = option(
        **FILE_OPTION,
        multiple=True,
        help="Private key, made by `token keys`, by which the domain states which key is that of a "
        "runtime; repeatable, the first one signs [default: a new one at each start].",
    )

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        keys = tuple(read_signer(one) for one in self.domain_key)
        config = attrs.evolve(config, domain_keys=keys)
        if self.jwks:
            return attrs.evolve(config, login=self._login(config, self._provider(config.domain)))
        if self.issuer or self.audience or self.client or self.used_tokens:
            raise CommandError(
                "--issuer, --audience, --client and --used-tokens are about tokens that --jwks "
                "verifies; give --jwks as well"
            )
        if config.allow_legacy:
            return config
        login = self._login(config, lambda _: Nobody())
        return attrs.evolve(config, login=login, remarks=(*config.remarks, _LOCKED))

    def _login(self, config: NodeConfig, provider: ProviderMaker) -> Login:
        admission = Admission.ANYBODY if config.allow_legacy else Admission.VOUCHED
        return Login(
            provider=provider,
            admission=admission,
            life=self.session_life,
            clock=_now,
            used_tokens=self.used_tokens,
        )

    def _provider(self, domain: str) -> ProviderMaker:
        # Slow to import, and not needed for --help.
        from actors.node.login.key_provider import by_keys, terms_of  # noqa: PLC0415

        terms = terms_of(domain, self.issuer, self.audience, self.client, self.max_token_life)
        sources = [key_source(where, is_shared=self._is_shared()) for where in self.jwks]
        if len(sources) == 1:
            return by_keys(sources[0], terms)
        return by_keys(dict(zip(self.issuer, sources, strict=True)), terms)

    def _is_shared(self) -> bool:
        """Return whether several issuers have one set of keys; refuse sets that are nobody's.

        Raises:
            CommandError: It is not clear whose keys are in a set.
        """
        if len(self.jwks) == 1:
            return len(set(self.issuer)) > 1
        if len(set(self.issuer)) != len(self.jwks) or len(self.issuer) != len(self.jwks):
            raise CommandError(
                "each of several --jwks has the keys of one issuer; give as many --issuer as "
                "--jwks, in the same order, and none of them twice"
            )
        if len(set(self.jwks)) != len(self.jwks):
            raise CommandError(f"a --jwks stands there twice; {_BINDING}")
        return False


_BINDING: Final = (
    "the keys of one issuer must not sign for another: give one --jwks for each --issuer, in the "
    "same order, or one file in which each key has the name of its issuer beside it ('iss')"
)


def _now() -> float:
    """Return the seconds since the epoch as the system does, also after it was set."""
    return time.time_ns() / 1e9


def key_source(where: str, *, is_shared: bool = False) -> "KeySource":
    """Return where keys come from, a file or a server; a file is read once, to be sure.

    Args:
        where: File or URL.
        is_shared: Whether the keys are of several issuers.

    Raises:
        CommandError: It cannot be used, or keys of several issuers do not name theirs.
    """
    if not where.startswith(_URLS):
        return _file(Path(where), is_shared=is_shared)
    if is_shared:
        raise CommandError(f"{where} has the keys of several --issuer; {_BINDING}")
    return _server(where)


def _server(text: str) -> "KeyUrl":
    from actors.keys.key_source import KeyUrl  # noqa: PLC0415
    from actors.kit.http_client import HttpUrlError, ServerUrl  # noqa: PLC0415

    try:
        url = ServerUrl.read(text)
    except HttpUrlError as exc:
        raise CommandError(f"{exc}; correct --jwks") from exc
    if is_plain(url.text):
        why = "keys come by https, or from this machine"
        raise CommandError(f"{text} cannot be used: {why}; correct --jwks")
    return KeyUrl(url)


def _file(path: Path, *, is_shared: bool) -> "KeyFile":
    from actors.keys.key_source import KeyFile, KeysAwayError  # noqa: PLC0415 - as above

    source = KeyFile(path)
    try:
        keys = source.read()
    except KeysAwayError as exc:
        raise CommandError(
            f"{exc}; name a file of public keys with --jwks, such as `token keys` makes"
        ) from exc
    nobodys = [name for name, key in keys.items() if key.issuer is None]
    if is_shared and nobodys:
        raise CommandError(f"key {nobodys[0]!r} in {path} names no issuer; {_BINDING}")
    return source


if TYPE_CHECKING:
    from actors.commands.node.processes import Member


PROFILES: Final[Mapping[str, Mapping[str, object]]] = {
    "upstream": {
        "allow_legacy": True,
        "loose_names": True,
        "message_rate": "none",
        "handshake_rate": "none",
        "max_unauthenticated": "10000",
        "max_unauthenticated_per_host": "10000",
        "outbox_messages": "none",
        "outbox_bytes": "512MiB",
        "outbox_budget": "1GiB",
    }
}
"""The options of each profile, as a file of options would name them.

`upstream`: upstream's own test suites, which send as quickly as they can, 100 MB at once, and open
1,000 connections from one host.
"""


_OWN: Final = ("pid", "http_url", "rest_url")
"""Fields of the ready line that each of several processes has for itself."""


@click.command("node")
@click.option("--domain", required=True, callback=check_domain, help="The domain of the node.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    callback=check_place,
    help="Address for connections of stubs; port 0 picks a free one.",
)
@click.option("--allow-legacy", is_flag=True, help="Serve the wire forms of upstream's stubs.")
@click.option(
    "--loose-names",
    is_flag=True,
    help="Let runtimes in upstream's forms have names with slashes, and share component addresses.",
)
@click.option(
    "--state",
    **FILE_OPTION,
    help="File of sessions and used login tokens: after a restart runtimes come back by themselves "
    "[default: FILE-state beside --registry FILE, else in memory].",
)
@topic_options(
    ConnectorOptions,
    LoginOptions,
    policy_options,
    click.option(
        "--observation",
        **choice(Observation, Observation.OWNER),
        help="Deliver changes of an object with its owner's consent, or to all subscribers.",
    ),
    ForeignOptions,
    limit_options,
    origin_option,
    http_options,
    TlsOptions,
    CatalogueOptions,
    EngineOptions,
)
@trace_options
@monitor_option
@config_option
@profile_option(PROFILES)
@log_option
def command(  # type: ignore[explicit-any] # options with the names of fields
    *,
    loose_names: bool,
    profile: str | None,
    allow_origin: frozenset[str],
    topics: tuple[Topic, ...],
    trace: OpenTracer,
    **same: Any,
) -> int:
    """Run the message node of a domain until SIGTERM or Ctrl-C.

    Prints one line of JSON when it is ready, with the addresses it listens on.
    """
    del profile  # it was read before the others
    if loose_names and not same["allow_legacy"]:
        raise CommandError("--loose-names is about upstream's forms; add --allow-legacy")
    config = NodeConfig(
        names=Names.LOOSE if loose_names else Names.STRICT,
        origins=allow_origin,
        ids=fresh_ids(),
        **same,  # options with the names of fields
    )
    for topic in topics:
        config = topic.applied(config)
    certificates = [
        one
        for topic in topics
        if isinstance(topic, TlsOptions)
        for one in topic.certificates(config)
    ]
    member = _member()
    count = max(one.processes for one in topics if isinstance(one, EngineOptions))
    http = [] if config.http is None else places_from(config.http.listen, count, "--http")
    needs = Needs(
        partial(_check, config, topics, count), {"--listen": [config.listen], "--http": http}
    )
    if count > 1 and member is None:
        return _run_several(config, http or [""] * count, needs)
    shared = ""
    if member is not None:
        config, shared = member.applied(config), member.listen
    opened = partial(_open, config, trace, certificates, shared)
    work = partial(serve, opened, partial(_announce, config))
    with shared_fields(**({"node_name": config.node_name} if config.node_name else {})):
        return run(work if member is None else partial(until_parent_ends, work), needs=needs)


def _member() -> "Member | None":
    """Return what the parent of this process has decided; None: this is none of several."""
    ctx = click.get_current_context()
    if ctx.obj is None:
        return None
    from actors.commands.node.processes import Member  # noqa: PLC0415 - imports the engine

    return ctx.find_object(Member)


def _run_several(config: NodeConfig, http: Sequence[str], needs: Needs) -> int:
    """Run several processes, each a node of the domain.

    Args:
        config: The configuration of all of them.
        http: Address of the HTTP service of each; empty: it has none.
        needs: What they need.
    """
    from actors.commands.node.processes import open_processes  # noqa: PLC0415 - as above

    def announce(ready: Mapping[str, JsonObject]) -> None:
        first, *_ = ready.values()
        urls = {field: value for field, value in first.items() if field.endswith("url")}
        own = [
            {"node_name": name, **{field: one[field] for field in _OWN}}
            for name, one in ready.items()
        ]
        say_ready("node", config.domain, **urls, processes=own)
        _remark(config)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, JsonObject]]:
        # Or each of them would complain.
        await trio.to_thread.run_sync(needs.check, abandon_on_cancel=True)
        async with open_processes(config, http) as ready:
            yield ready

    return run(partial(serve, opened, announce), needs=needs)


def _check(config: NodeConfig, topics: Sequence[Topic], count: int) -> None:
    """Look at what the node opens at its start, as it does.

    Args:
        config: The configuration of the node.
        topics: Its options.
        count: How many processes it has.

    Raises:
        LocalServerError: Processes need a NATS server, and there is none.
        CommandError: A certificate is not good now.
        PolicyFileError: A policy file cannot be used.
        RegistryFileError: The file of the domain registry cannot be used.
        StateFileError: The file of the sessions cannot be used.
        OpenMetricsError: Every client could read the metrics.
    """
    from actors.http.service import check_readers  # noqa: PLC0415 - slow to import

    for topic in topics:
        if isinstance(topic, TlsOptions):
            topic.check_times()
    if config.policies is not None:
        read_policies(config.policies.files)
    if config.registry is not None and (why := flaw_of(config.registry, RECORDS)):
        raise RegistryFileError(config.registry, why)
    if config.state_file is not None and (why := flaw_of(config.state_file, STATE)):
        raise StateFileError(config.state_file, why)
    if config.http is not None:
        check_readers(config.http, config.http.listen)
    if count > 1:
        from transports.engine.server import find_program  # noqa: PLC0415 - for several only

        find_program()


def _timed(config: NodeConfig) -> NodeConfig:
    """Set the clocks of a node to the time of day; Trio's clock runs only now."""
    offset = clock_offset()
    return attrs.evolve(config, clock_offset=offset, foreign=config.foreign.timed(offset))


@asynccontextmanager
async def _open(
    config: NodeConfig, trace: OpenTracer, certificates: Sequence[Certificate], shared: str
) -> AsyncIterator[Node]:
    async with (
        trace(config.process_name) as tracer,
        open_system_network(config.client_tls, shared) as network,
        open_node(_timed(config), network, tracer) as node,
        reloading(tuple(rereads(node, certificates)), [one.takes for one in certificates]),
    ):
        yield node


def _announce(config: NodeConfig, node: Node) -> None:
    say_ready(
        "node",
        config.domain,
        url=node.url,
        legacy_url=node.legacy_url,
        session_url=node.session_url,
        http_url=node.http_url,
        rest_url=node.rest_url,
    )
    _remark(config)


def _remark(config: NodeConfig) -> None:
    for remark in config.remarks:
        echo(f"protofly: {remark}", err=True)
