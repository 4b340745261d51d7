"""Acceptors for upstream's stubs: plain ones, and those that open a session at `mn:/session`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import attrs
import orjson
from typing_extensions import override

from actors.kit.counters import Form
from actors.node.links.acceptor import Acceptor, Claim, Item, spelt
from fsm.registry.node_rights import Names
from fsm.session.node_session_io import Liveness, OutboundMessage
from specs.addresses.address import canonical, is_below, runtime_of
from specs.bodies.word import SessionMethod
from specs.dialects.dialect import PLAIN, UPSTREAM, dialect_of, meaning_of
from specs.errors import BadMessageError, BadUrlError
from specs.identity import Stamp
from specs.jsonvalue import Json, JsonObject
from specs.message import GIVEN_UP, Message, MessageType, key_given_up
from specs.reply_code import Code
from transports import codec
from transports.link import Upgrade

_RUNTIME: Final = "runtimeURL"
_KEPT: Final = Stamp(is_kept=True)
"""Stamp that leaves the identities in message bodies, which peers of upstream send each other."""

_OPENING: Final = 1
"""Id of the session request that the acceptor makes itself; only a refusal reaches the peer."""


def _select_known(entries: Sequence[OutboundMessage]) -> Iterator[OutboundMessage]:
    """Yield the messages that upstream knows: not those that give up a request."""
    for entry in entries:
        if GIVEN_UP not in entry.message.body or key_given_up(entry.message) is None:
            yield entry


class PlainAcceptor(Acceptor):
    """Acceptor of `/stub/connect?runtimeURL=`: the URL names the runtime whose session is opened.

    Upstream's command `disconnect` closes the session. The acceptor learns the dialect from every
    readable message, so that refusals are written in the peer's dialect, too.

    Args:
        upgrade: The upgrade request of the peer.
    """

    wire = Form.PLAIN
    liveness = Liveness.BY_LINK
    stamp = _KEPT

    def __init__(self, control: str, upgrade: Upgrade) -> None:
        self._control = control
        self._runtime_url = upgrade.query.get(_RUNTIME, "")
        self._runtime: str | None = None
        with suppress(BadUrlError):
            self._runtime = canonical(self._runtime_url)
        self.dialect = dialect_of({"from": self._runtime_url}, UPSTREAM)

    @override
    def greeting(self) -> Sequence[Item]:
        return (Claim(self._control_request("open")),)

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        message = self.familiar(frame)
        if message is not None:
            return (meaning_of(message, self.dialect),)
        try:
            raw = codec.read_object(frame)
        except BadMessageError:
            self.learn(codec.glance(frame))
            return codec.decode_items(frame)
        if raw.get("cmd") == "disconnect" and self._is_own(raw.get("body")):
            return (self._control_request("close"),)
        self.learn(raw)
        item = codec.decode_object(frame, raw, self.stamp)
        return (meaning_of(item, self.dialect),) if isinstance(item, Message) else item.items

    @override
    def write(self, entries: Sequence[OutboundMessage]) -> Iterable[bytes]:
        for entry in _select_known(entries):
            if entry.message.from_ != self._control or entry.message.code != Code.OK:
                yield spelt(entry, self.dialect)

    def _control_request(self, method: str) -> Message:
        body: JsonObject = {"method": method, "params": {_RUNTIME: self._runtime_url}}
        return Message(
            id=_OPENING,
            type=MessageType.EXECUTE,
            from_=self._runtime or self._control,
            to=self._control,
            body=body,
        )

    def _is_own(self, body: Json) -> bool:
        """Return whether the body of a command names the runtime of this peer, or no runtime."""
        runtime_url = body.get(_RUNTIME) if isinstance(body, dict) else None
        if not isinstance(runtime_url, str):
            return runtime_url is None
        try:
            return canonical(runtime_url) == self._runtime
        except BadUrlError:
            return False


_MANAGER: Final = "mn:/session"
_STUB: Final = "protostub/session"
"""Path after the runtime's address that the node uses in place of the stub's token."""


class SessionAcceptor(Acceptor):
    """Acceptor of `/ws`: a session is opened by upstream's handshake; each frame is a message.

    The stubs call themselves `<runtime>/<token>`. Only this acceptor knows the token: the node and
    all other peers see an address without it. Messages of session control are written in a dialect
    of their own, because those stubs number and compare them by themselves.

    Args:
        control: Address of session control.
        names: Rule for the names of runtimes.
    """

    wire = Form.SESSION
    liveness = Liveness.BY_LINK
    stamp = _KEPT

    def __init__(self, control: str, names: Names = Names.STRICT) -> None:
        self._control = control
        self._names = names
        self.dialect = UPSTREAM
        self._manners = PLAIN
        self._asker = ""
        self._runtime = ""
        self._stub_address: str | None = None

    @property
    def _inside(self) -> str:
        """The address of the stub inside the node, without its token."""
        return f"{self._runtime}/{_STUB}"

    @override
    def read(self, frame: bytes) -> Sequence[Item]:
        item: Message | codec.BadLine | None = self.familiar(frame)
        if item is None:
            try:
                raw = codec.read_object(frame)
            except BadMessageError:
                self.learn(codec.glance(frame))
                return self._hide_token(codec.decode_items(frame))
            if raw.get("to") == _MANAGER:
                return (self._read_request(raw),)
            self.learn(raw)
            item = codec.decode_object(frame, raw, self.stamp)
        items = (meaning_of(item, self.dialect),) if isinstance(item, Message) else item.items
        return self._hide_token(items)

    def _hide_token(self, items: Sequence[Item]) -> Sequence[Item]:
        """Replace the stub's address, which has a token, in received messages."""
        if self._stub_address is None:
            return items
        stub_address, inside = self._stub_address, self._inside
        return tuple(
            _rename_address(item, stub_address, inside) if isinstance(item, Message) else item
            for item in items
        )

    @override
    def write(self, entries: Sequence[OutboundMessage]) -> Iterable[bytes]:
        for entry in _select_known(entries):
            message = entry.message
            if message.from_ == self._control:
                yield from self._write_answer(message)
            else:
                yield self._line(entry)

    def _line(self, entry: OutboundMessage) -> bytes:
        """Encode a message of other senders than session control, with the stub's own address."""
        if self._stub_address is not None:
            renamed = _rename_address(entry.message, self._inside, self._stub_address)
            if renamed != entry.message:
                return codec.encode(renamed, self.dialect)
        return spelt(entry, self.dialect)

    def _read_request(self, raw: JsonObject) -> Item:
        """Translate a request to upstream's session manager into a request to session control."""
        self._manners = dialect_of(raw)
        if self.dialect is UPSTREAM:
            self.dialect = attrs.evolve(UPSTREAM, runtime_alias=self._manners.runtime_alias)
        asker, type_ = raw.get("from"), raw.get("type")
        method = type_.lower() if isinstance(type_, str) else type_
        opening: JsonObject = {"id": raw.get("id"), "type": "execute", "from": asker}
        body: JsonObject = {"method": method}
        try:
            self._asker = canonical(asker) if isinstance(asker, str) else ""
        except BadUrlError:
            self._asker = ""
        if self._asker:
            self._runtime = self._runtime_in(self._asker, method)
            opening["from"] = self._inside
            body["params"] = self._params(self._asker)
        return codec.decode_line(orjson.dumps({**opening, "to": self._control, "body": body}))

    def _runtime_in(self, asker: str, method: Json) -> str:
        """Return the runtime's address, given a stub's address, which may end in a token."""
        if self._names is Names.STRICT:
            return runtime_of(asker)
        is_token = method != SessionMethod.OPEN and asker != runtime_of(asker)
        return asker.rpartition("/")[0] if is_token else asker

    def _params(self, asker: str) -> JsonObject:
        runtime = self._runtime
        if self._stub_address is None and asker != runtime:
            self._stub_address = asker
        stub_address = asker if asker != runtime else self._stub_address
        if stub_address is None or not is_below(stub_address, runtime):
            return {"runtimeURL": runtime}
        return {"runtimeURL": runtime, "token": stub_address.removeprefix(f"{runtime}/")}

    def _write_answer(self, message: Message) -> Iterable[bytes]:
        """Encode an answer of session control in upstream's form; skip a successful close."""
        token = _token(message.body.get("value"))
        if token is not None:
            self._stub_address = f"{self._runtime}/{token}"
            body: JsonObject = {"code": message.code, "runtimeToken": token}
        elif message.code == Code.OK:
            return
        else:
            body = {"code": message.code, "desc": message.body.get("description")}
        to = self._asker or message.to
        reply = Message(message.id, MessageType.RESPONSE, _MANAGER, to, body)
        yield codec.encode(reply, self._manners)


def _token(value: Json) -> str | None:
    token = value.get("sessionToken") if isinstance(value, dict) else None
    return token if isinstance(token, str) else None


def _rename_address(message: Message, old: str, new: str) -> Message:
    """Replace an address by another in the sender, receiver, `source` and `via` of a message."""
    body = message.body
    changed: JsonObject = {
        key: _put(body[key], old, new) for key in ("source", "via") if key in body
    }
    return attrs.evolve(
        message,
        from_=new if message.from_ == old else message.from_,
        to=new if message.to == old else message.to,
        body={**body, **changed} if changed else body,
    )


def _put(value: Json, old: str, new: str) -> Json:
    if isinstance(value, list):
        return [_put(each, old, new) for each in value]
    return new if value == old else value
