"""Servers of STUN and TURN that an operator lists in a TOML file (CON-04).

    ttl = 3600                     # seconds for which a made credential opens a server

    [[server]]
    urls = ["stun:stun.a.example"]

    [[server]]
    urls = ["turn:turn.a.example:3478?transport=udp"]
    secret = "..."                 # shared with the server: `static-auth-secret` of coturn

    [[server]]
    urls = ["turns:turn.b.example"]
    username = "alice"             # or a name and a password that stay
    credential = "..."

With a secret, each runtime gets a name and a password of its own, which end (TURN REST API,
draft-uberti-behave-turn-rest-00; `use-auth-secret` of coturn). The name is the end of its time in
seconds since 1970, a colon, and 32 hexadecimal digits, the same for the same runtime. The password
is the HMAC-SHA1 of the name in base64.
"""

import hashlib
import hmac
import os
import re
from base64 import b64encode
from typing import Final, final

import attrs

from actors.kit.arguments import PathInput, as_path
from actors.kit.files import check_names, errors_of, read_toml
from actors.kit.log import get_logger
from specs.bodies.session import IceServer, IceServers, TurnServer
from specs.errors import PlaceError
from specs.limits.p2p import ICE_FILE_BYTES, ICE_TTL, ICE_TTL_LEAST, ICE_TTL_MOST, LISTED_SERVERS

_log = get_logger("actors.kit")

_FILE: Final = frozenset({"ttl", "server"})
_SERVER: Final = frozenset({"urls", "secret", "username", "credential"})
_URL: Final = re.compile(
    r"(?:stuns?:(?P<stun>H)|turns?:(?P<turn>H)(?:\?transport=(?:udp|tcp))?)".replace(
        "H", r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
    )
)
"""An URI of RFC 7064 or RFC 7065."""
_USER_BYTES: Final = 16
_OTHERS: Final = 0o077


@final
class IceFileError(PlaceError, public=True):
    """The configuration file of STUN and TURN servers cannot be used; the operator must act."""

    summary = "cannot use the list of servers {}"


@final
@attrs.frozen
class ListedServer:
    """STUN or TURN server from the configuration, with its secret or credentials.

    Attributes:
        urls: URLs of the server: all of STUN, or all of TURN.
        secret: Secret shared with the server, for temporary credentials; empty: none is configured.
        username: Permanent user name; empty at a server of STUN, or with a secret.
        credential: Password of the permanent user name.

    Raises:
        ValueError: An URL is of another form, or nothing or too much opens the server.
    """

    urls: tuple[str, ...]
    secret: str = attrs.field(default="", repr=False)
    username: str = ""
    credential: str = attrs.field(default="", repr=False)

    def __attrs_post_init__(self) -> None:
        read = [_URL.fullmatch(url) for url in self.urls]
        for url, match in zip(self.urls, read, strict=True):
            if match is None:
                raise ValueError(f"{url!r} is no URL such as stun:HOST or turn:HOST:PORT")
        turns = {match["turn"] is not None for match in read if match is not None}
        if len(turns) != 1:
            raise ValueError("a server has URLs, all of STUN or all of TURN")
        named = (bool(self.secret), bool(self.username), bool(self.credential))
        if turns == {False} and any(named):
            raise ValueError("nothing opens a server of STUN")
        if turns == {True} and named not in {(True, False, False), (False, True, True)}:
            raise ValueError("a server of TURN has a secret, or a username and a credential")

    def with_credentials(self, user: str, end: int) -> IceServer:
        """Return the URLs of the server with user name and password for one user.

        Args:
            user: User of the server, without a colon.
            end: Second since the epoch at which a made credential ends.
        """
        if not self.secret:
            return IceServer(self.urls, self.username or None, self.credential or None)
        name = f"{end}:{user}"
        made = hmac.digest(self.secret.encode(), name.encode(), hashlib.sha1)
        return IceServer(self.urls, name, b64encode(made).decode())


@final
@attrs.frozen
class IcePlan:
    """All configured STUN and TURN servers, from which each user gets credentials.

    Attributes:
        servers: The servers; may be empty.
        ttl: Seconds for which a temporary credential is valid.

    Raises:
        ValueError: There are too many, or the time is too short or too long.
    """

    servers: tuple[ListedServer, ...] = ()
    ttl: int = ICE_TTL

    def __attrs_post_init__(self) -> None:
        if len(self.servers) > LISTED_SERVERS:
            raise ValueError(f"more than {LISTED_SERVERS} servers are listed")
        if not ICE_TTL_LEAST <= self.ttl <= ICE_TTL_MOST:
            raise ValueError(f"ttl is not between {ICE_TTL_LEAST} and {ICE_TTL_MOST} seconds")

    def servers_for(self, user: str, now: float) -> IceServers:
        """Return the servers with credentials for one user.

        Args:
            user: Address of the runtime that uses them.
            now: Seconds since the epoch.
        """
        end = int(now) + self.ttl
        ends = any(server.secret for server in self.servers)
        # The address of a user has colons, and is no matter of the server.
        name = hashlib.sha256(user.encode()).hexdigest()[: 2 * _USER_BYTES]
        opened = tuple(server.with_credentials(name, end) for server in self.servers)
        return IceServers(opened, self.ttl if ends else None)

    def relay(self, user: str, now: float) -> TurnServer | None:
        """Return the first TURN server with credentials for one user; None: none is configured.

        Args:
            user: Name of a reservation.
            now: Seconds since the epoch.
        """
        for server in self.servers_for(user, now).servers:
            if server.username is not None and server.credential is not None:
                return TurnServer(server.urls[0], server.username, server.credential)
        return None


def read_ice(path: PathInput) -> IcePlan:
    """Read the configuration file of STUN and TURN servers.

    Blocks while it reads.

    Args:
        path: Path of the file.

    Raises:
        TypeError: The path is of a wrong kind.
        IceFileError: It cannot be read, or has unknown or wrong entries.
    """
    path = as_path(path, "the list of servers")
    with errors_of(path, IceFileError), path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        plan = _plan(read_toml(file.read(ICE_FILE_BYTES).decode()))
    if mode & _OTHERS and any(server.secret or server.credential for server in plan.servers):
        why = f"not only its owner has rights on it; run chmod 600 {path}"
        _log.warning("list of servers open to others", path=str(path), mode=f"{mode:03o}", why=why)
    return plan


def _plan(content: dict[str, object]) -> IcePlan:
    """Read the table of a file of ICE servers.

    Raises:
        TypeError: A value is of a wrong kind.
        ValueError: A key is unknown, or a value is out of range.
    """
    check_names("the file", content, _FILE)
    entries, ttl = content.get("server"), content.get("ttl", ICE_TTL)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("it has no list of tables [[server]]")
    if not isinstance(ttl, int) or isinstance(ttl, bool):
        raise TypeError("ttl is no number of seconds")
    return IcePlan(tuple(_server(f"server {n}", entry) for n, entry in enumerate(entries, 1)), ttl)


def _server(where: str, said: dict[str, object]) -> ListedServer:
    check_names(where, said, _SERVER)
    urls = said.get("urls")
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise ValueError(f"{where}: urls is no list of texts")
    texts: dict[str, str] = {}
    for name in _SERVER - {"urls"}:
        text = said.get(name, "")
        if not isinstance(text, str):
            raise TypeError(f"{where}: {name} is no text")
        texts[name] = text
    try:
        return ListedServer(tuple(urls), **texts)
    except ValueError as exc:
        raise ValueError(f"{where}: {exc}") from exc
