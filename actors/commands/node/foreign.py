"""Options of other systems: back ends, nodes of other domains, and this domain's catalogue."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

import attrs
import click
from typing_extensions import override

from actors.catalogue.source import Places
from actors.cli.group import CommandError
from actors.cli.options import (
    FILE_OPTION,
    Quantity,
    Topic,
    check_domain,
    check_foreign,
    ice_option,
    option,
)
from actors.commands.catalogues import catalogue_access, check_places
from actors.http.config import ShownCatalogue
from actors.keys.key_file import KeyFileError
from actors.keys.push import open_push_key
from actors.kit.back_ends.ice import IcePlan
from actors.kit.http_client import HttpUrlError, ServerUrl
from actors.node.config import Endpoint, ForeignPlan, NodeConfig
from actors.node.connectors.back_ends import BackEnds
from actors.node.connectors.global_registry import HttpGlobalRecords
from actors.node.connectors.push import PushConfig
from actors.node.connectors.quality import ConfiguredServers, HttpQualityBroker
from actors.pipe.plan import TokenSource, nothing
from actors.pipe.process import open_process_sandbox
from actors.runtime.stubs.credentials import CredentialsError, TokenFile, shown
from specs.limits.protocol import STUB_IDLE

_URLS: Final = ("http://", "https://")


def _check_registry(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Take the name of a file, or the address of a server."""
    if text is None or text.startswith(_URLS):
        return text
    if "://" in text:
        raise click.BadParameter(f"{text} is neither a file nor http://... or https://...")
    if Path(text).is_dir():
        raise click.BadParameter(f"{text} is a folder; name a file in it")
    return text


def _check_contact(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    if text is None or text.startswith(("mailto:", "https://")):
        return text
    raise click.BadParameter(f"{text!r} is neither mailto:... nor https://...")


def _check_origins(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> frozenset[str]:
    """Return the origins of servers; refuse what has a path, or is none."""
    origins = set()
    for value in values:
        try:
            server = ServerUrl.read(value)
        except HttpUrlError as exc:
            raise click.BadParameter(
                f"{value!r} is no origin such as https://push.example"
            ) from exc
        if server.path:
            raise click.BadParameter(f"{value!r} has a path; an origin has none")
        origins.add(f"{server.scheme}://{server.authority}")
    return frozenset(origins)


@final
@attrs.frozen
class ConnectorOptions(Topic):
    """The registry of a node, and the services that it relays to."""

    registry: str | None = option(
        metavar="FILE|URL",
        callback=_check_registry,
        help="Domain registry: a SQLite file, or the URL of a server [default: in memory].",
    )
    global_registry: str | None = option(
        metavar="URL", help="URL of the global registry [default: none]."
    )
    qos: str | None = option(
        metavar="URL", help="URL of the broker of network resources [default: none]."
    )
    ice: IcePlan | None = option(ice_option)
    push_key: Path | None = option(
        **FILE_OPTION,
        help="Wake runtimes that sleep by Web Push: key that proves to push services who "
        "calls; made if it is not there.",
    )
    push_contact: str | None = option(
        metavar="URL",
        callback=_check_contact,
        help="mailto: or https: URL of the operator, for push services.",
    )
    push_service: frozenset[str] = option(
        metavar="ORIGIN",
        multiple=True,
        callback=_check_origins,
        help="Push service that may be used, such as https://push.example; repeatable "
        "[default: all with public addresses].",
    )

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        records = _server("--global-registry", self.global_registry)
        server = _server("--qos", self.qos)
        is_remote = self.registry is not None and self.registry.startswith(_URLS)
        back_ends = BackEnds(
            registry=_server("--registry", self.registry) if is_remote else None,
            global_registry=None if records is None else partial(HttpGlobalRecords, records),
            quality=None if server is None else partial(HttpQualityBroker, server),
        )
        if self.ice is not None:
            if server is not None:
                raise CommandError("--ice lists what --qos is asked for; give one of them")
            back_ends = attrs.evolve(back_ends, quality=partial(ConfiguredServers, self.ice))
        file = None if is_remote or self.registry is None else Path(self.registry)
        config = attrs.evolve(config, registry=file, back_ends=back_ends)
        push = self._push(config.state_file)
        return attrs.evolve(config, back_ends=attrs.evolve(back_ends, push=push))

    def _push(self, state: Path | None) -> PushConfig | None:
        """Return how devices are woken; they are kept beside the state file."""
        if self.push_key is None:
            return None
        if find_spec("http_ece") is None:
            raise CommandError("--push-key needs a library: pip install 'protofly[push]'")
        if self.push_contact is None:
            raise CommandError(
                "push services demand to know who calls; name a mailto: or https: URL "
                "with --push-contact, such as mailto:ops@a.example"
            )
        try:
            key = open_push_key(self.push_key)
        except KeyFileError as exc:
            raise CommandError(f"{exc}; name another file with --push-key") from exc
        file = None if state is None else state.with_name(f"{state.name}-devices")
        return PushConfig(key=key, contact=self.push_contact, file=file, services=self.push_service)


def _server(option: str, text: str | None) -> ServerUrl | None:
    """Read where a server is.

    Raises:
        CommandError: It is nowhere.
    """
    if text is None:
        return None
    try:
        return ServerUrl.read(text)
    except HttpUrlError as exc:
        raise CommandError(f"{exc}; name one with {option}, such as http://127.0.0.1:8080") from exc


@final
@attrs.frozen
class CatalogueOptions(Topic):
    """The directory that is served as the catalogue of the domain."""

    catalogue: Path | None = option(
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Serve this directory, as `stub publish` fills it, at /.well-known/ of --http. Nodes "
        "that share an engine serve what is published in the directory of any of them.",
    )

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        if self.catalogue is None:
            return config
        if config.http is None:
            raise CommandError(
                "--catalogue names what is served over HTTP, but nothing is; add --http"
            )
        if not self.catalogue.is_dir():
            raise CommandError(
                f"{self.catalogue} is no directory that can be served; name another with "
                "--catalogue, or fill it with `stub publish`"
            )
        shown = ShownCatalogue(config.domain, self.catalogue)
        return attrs.evolve(config, http=attrs.evolve(config.http, catalogue=shown))


def _check_files(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return files by domain; refuse what is no `DOMAIN=FILE`."""
    files: dict[str, str] = {}
    for value in values:
        name, separator, path = value.partition("=")
        if not separator or not path:
            raise click.BadParameter(f"{value!r} is no DOMAIN=FILE such as b.example=b.token")
        files[check_domain(ctx, param, name)] = path
    return files


@final
@attrs.frozen
class ForeignOptions(Topic):
    """Other domains that the node reaches, and the login tokens for their nodes."""

    foreign: dict[str, str] = option(
        metavar="DOMAIN=URL",
        multiple=True,
        callback=check_foreign,
        help="Carry messages for this domain to its node, such as "
        "b.example=ws://host:4123/link; repeatable, in a file a table of URLs by domain.",
    )
    foreign_token_file: dict[str, str] = option(
        metavar="DOMAIN=FILE",
        multiple=True,
        callback=_check_files,
        help="Login token for the node of this domain, bound to this node; it is read again "
        "for each session. Repeatable, in a file a table by domain.",
    )
    foreign_catalogue: Places | None = option(
        metavar="[DOMAIN=]WHERE",
        multiple=True,
        callback=check_places,
        help="Directory or URL where another domain describes its stub, such as "
        "b.example=https://catalogue.b.example; repeatable. Without DOMAIN it serves all other "
        "domains, whose name replaces {domain} in it.",
    )
    foreign_trust: Path | None = option(
        **FILE_OPTION,
        help="TOML file of trusted domains and publishers; what catalogues have shown is kept "
        "beside it.",
    )
    foreign_idle: float = option(
        metavar="SECONDS",
        type=Quantity(min=1.0),
        default=STUB_IDLE,
        help="Release the stub of another domain after this time without a message.",
    )

    @override
    def applied(self, config: NodeConfig) -> NodeConfig:
        for domain in self.foreign_token_file:
            if domain not in self.foreign and self.foreign_catalogue is None:
                raise CommandError(
                    f"--foreign-token-file names what the node of {domain} is shown, but there "
                    f"is no route to it; add --foreign {domain}=URL"
                )
        if config.domain in self.foreign:
            raise CommandError(
                f"--foreign names {config.domain}, which is the node's own domain; remove it"
            )
        catalogues = catalogue_access(
            self.foreign_catalogue, self.foreign_trust, f"{config.domain}.node"
        )
        if not self.foreign and catalogues is None:
            return config
        domains = {one: Endpoint(url, self._login(one)) for one, url in self.foreign.items()}
        plan = ForeignPlan(
            MappingProxyType(domains),
            open_process_sandbox,
            catalogues,
            {one: self._login(one) for one in self.foreign_token_file},
            self.foreign_idle,
        )
        return attrs.evolve(config, foreign=plan)

    def _login(self, domain: str) -> TokenSource:
        """Return what reads the token for a domain; it has been read once, to be sure."""
        path = self.foreign_token_file.get(domain)
        if path is None:
            return nothing
        file = TokenFile(Path(path))
        try:
            file.read()
        except CredentialsError as exc:
            raise CommandError(
                f"{exc.reason}; put a token for {domain} into it, "
                "or name another with --foreign-token-file"
            ) from exc
        return partial(shown, file, domain)
