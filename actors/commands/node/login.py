"""Options of the node's login: whose tokens open sessions, and for how long."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import attrs
import click
from typing_extensions import override

from actors.cli.command_error import CommandError
from actors.cli.options import FILE, Quantity
from actors.cli.topic import Topic, topic_options
from actors.commands.signer import read_signer
from actors.node.config import NodeConfig
from actors.node.login.provider import Admission, Login, Nobody, ProviderMaker
from specs.limits.node import SESSION_LIFE, TOKEN_LIFE
from transports.urls import is_plain

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

    jwks: tuple[str, ...]
    issuer: tuple[str, ...]
    audience: tuple[str, ...]
    client: tuple[str, ...]
    max_token_life: float
    session_life: float
    used_tokens: Path | None
    domain_key: tuple[Path, ...]

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


login_options = topic_options(
    LoginOptions,
    click.option(
        "--jwks",
        metavar="FILE|URL",
        multiple=True,
        help="Public keys that verify login tokens, as a JSON Web Key Set; a file is read again "
        "when it changes. Repeatable: one for each --issuer, in the same order. Without it, "
        "sessions can be opened only if --allow-legacy is given.",
    ),
    click.option(
        "--issuer",
        metavar="TEXT",
        multiple=True,
        help="Accept only tokens of this issuer; repeatable [default: all that have a key].",
    ),
    click.option(
        "--audience",
        metavar="TEXT",
        multiple=True,
        help="Accept tokens for this audience, beside the domain and its node; repeatable.",
    ),
    click.option(
        "--client",
        metavar="TEXT",
        multiple=True,
        help="Accept tokens that were issued to this client of the identity provider (their claim "
        "azp), beside those that name an audience there; repeatable.",
    ),
    click.option(
        "--max-token-life",
        metavar="SECONDS",
        type=Quantity(min=1),
        default=TOKEN_LIFE,
        show_default=True,
        help="Refuse tokens that live longer, from when they were issued.",
    ),
    click.option(
        "--session-life",
        metavar="SECONDS",
        type=Quantity(min=1),
        default=SESSION_LIFE,
        show_default=True,
        help="Seconds after which a session needs a new login.",
    ),
    click.option(
        "--used-tokens",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File of used tokens, for nodes that share it [default: in the file of --state].",
    ),
    click.option(
        "--domain-key",
        metavar="FILE",
        type=FILE,
        multiple=True,
        help="Private key, made by `token keys`, by which the domain states which key is that of a "
        "runtime; repeatable, the first one signs [default: a new one at each start].",
    ),
)
"""The options of the login."""
