"""The messages of a P2P composition, as they look on the wire (protocol pages 04 and 09)."""

from collections.abc import Iterable, Iterator
from typing import Final

from fsm.compositions.p2p_scene import YES, End, Scene, has_candidates, negotiation_of
from fsm.p2p.negotiation import beginning
from fsm.p2p.negotiation import plea as written_plea
from fsm.product.composition import Message, Wire
from fsm.product.rule import Got, Rule
from specs.jsonvalue import Json, JsonObject

__all__ = ["messages_of"]

_SCHEMA: Final = "hyperty-catalogue://catalogue.a.ex/.well-known/dataschema/Connection"


def messages_of(scene: Scene, rules: Iterable[Rule]) -> Iterator[Message]:
    """Every message that a rule of the scene takes or sends, each once."""
    forms = dict(_forms(scene))
    names: dict[str, None] = {}
    for rule in rules:
        if isinstance(rule.cause, Got):
            names[rule.cause.message] = None
        names |= {one.message: None for one in rule.act.sends}
    for name in names:
        cite, wire = forms.get(name, ("a notice within one process", None))
        yield Message(name, cite, wire)


_Form = tuple[str, tuple[str, Wire]]


def _forms(scene: Scene) -> Iterator[_Form]:
    for end in scene.all_ends():
        yield from _local(scene, end)
        yield from _answers(scene, end)
        for peer in scene.peers(end):
            yield from _between(scene, end, peer)
        if end.is_requester:
            url = f"{_address(scene, end.other)}/p2phandler/1"
            yield f"{end.name} invites", ("M-34", _invites(scene, end, url))


def _address(scene: Scene, own: str) -> str:
    return scene.address(own)


def _object(end: End) -> str:
    """The address of an end's Connection object: c1 and c2, or c3 and c4 the other way round."""
    number = 2 * end.number - (1 if end.is_requester else 0)
    turned = (end.own == "b") is end.is_requester
    return f"connection://{end.own}.ex/c{number + (2 if turned else 0)}"


def _stub(scene: Scene, end: End) -> str:
    address = _address(scene, end.own)
    return f"{address}/p2prequester/{end.number}" if end.is_requester else f"{address}/p2phandler/1"


def _way(source: str, target: str) -> str:
    """The hop of a message: where it comes from and goes to, and what is between left out."""
    return f"{source}>..>{target}"


def _manager(end: End) -> str:
    """The sync manager of an end's runtime, as hops call it."""
    return f"R{end.own.upper()}.sm"


def _message(kind: str, source: str, target: str, body: JsonObject) -> JsonObject:
    return {"type": kind, "from": source, "to": target, "body": body}


def _invites(scene: Scene, end: End, target: str) -> Wire:
    stub = _stub(scene, end)
    body: JsonObject = {
        "source": stub,
        "schema": _SCHEMA,
        "value": {"runtime": _address(scene, end.own), "reporter": stub},
    }
    return Wire(
        _way(_manager(end), target),
        _message("create", f"{_object(end)}/subscription", target, body),
    )


def _answers(scene: Scene, end: End) -> Iterator[_Form]:
    """The answers to an end's invitation."""
    asked = f"{_object(end)}/subscription"
    for word, code in (("accepted", 200), ("refused", 409)):
        for peer in scene.peers(end)[:1]:
            question = f"{end.name} invites" + ("" if end.is_requester else f" {peer.name}")
            answer = _message("response", _stub(scene, peer), asked, {"code": code})
            yield (
                f"{end.name} is {word}",
                (
                    "M-35",
                    Wire(_way(_stub(scene, peer), _manager(end)), answer, question),
                ),
            )


def _between(scene: Scene, end: End, peer: End) -> Iterator[_Form]:
    """What an end's side tells a peer's about the end's object, and is asked by it."""
    url, manager = _object(end), f"{_address(scene, peer.own)}/sm"
    if not end.is_requester:
        target = _stub(scene, peer)
        yield f"{end.name} invites {peer.name}", ("M-34", _invites(scene, end, target))
    question = f"{peer.name} observes {end.name}"
    back = _way(_manager(end), _manager(peer))
    out = _way(_manager(end), _stub(scene, peer))
    ask = _message("subscribe", manager, f"{url}/subscription", {"source": _stub(scene, peer)})
    yield question, ("M-36", Wire(_way(_manager(peer), _manager(end)), ask))
    none = _message("response", f"{url}/subscription", manager, {"code": 404})
    yield f"{end.name} is hidden from {peer.name}", ("M-37", Wire(back, none, question))
    gone = _message("delete", url, f"{url}/changes", {"source": _stub(scene, end)})
    withdrawn = f"{end.name} is withdrawn for {peer.name}"
    yield withdrawn, ("M-47", Wire(out, gone, is_event=True))
    for offers in scene.offers:
        for plea in scene.pleas:
            told = f"{offers} {plea} for {peer.name}"
            value: JsonObject = {"url": url, "version": 1, "data": _data(scene, end, offers, plea)}
            body: JsonObject = {"code": 200, "value": value}
            whole = _message("response", f"{url}/subscription", manager, body)
            yield f"{end.name} shows {told}", ("M-37", Wire(back, whole, question))
            change = _message("update", url, f"{url}/changes", _change(scene, end, offers, plea))
            news = f"{end.name} changes to {told}"
            yield news, ("M-40", Wire(out, change, is_event=True))


def _candidates(end: End, offers: str) -> list[Json]:
    one: JsonObject = {"candidate": f"cand-{end.own}", "sdpMid": "0", "sdpMLineIndex": 0}
    return [one] if has_candidates(offers) else []


def _status(offers: str, plea: str) -> str:
    """As `fsm.p2p.negotiation` writes it."""
    number = negotiation_of(offers)
    return beginning(number) if plea == "0" else written_plea(number, int(plea))


def _data(scene: Scene, end: End, offers: str, plea: str) -> JsonObject:
    kind = "offer" if end.is_requester else "answer"
    return {
        "status": _status(offers, plea),
        "owner": _stub(scene, end),
        "connectionDescription": {"type": kind, "sdp": "v=0.."},
        "iceCandidates": _candidates(end, offers),
    }


def _change(scene: Scene, end: End, offers: str, plea: str) -> JsonObject:
    source, status = _stub(scene, end), _status(offers, plea)
    if plea != "0" or not has_candidates(offers):
        return {"attribute": "status", "value": status, "version": 2, "source": source}
    return {
        "attribute": "iceCandidates",
        "attributeType": "array",
        "operation": "add",
        "value": _candidates(end, YES),
        "version": 2,
        "source": source,
    }


def _local(scene: Scene, end: End) -> Iterator[_Form]:
    """What a stub and its registry tell each other."""
    stub = _stub(scene, end)
    registry = f"{_address(scene, end.own)}/registry"
    remote = _address(scene, end.other)
    table = f"R{end.own.upper()}.registry"
    up, down = _way(stub, table), _way(table, stub)
    for state in ("created", "in-progress", "yielding", "live", "failed", "disconnected"):
        body: JsonObject = {"value": state, "resource": remote}
        kind = "create" if state == "created" else "update"
        event = _message(kind, stub, f"{stub}/status", body)
        cite = "M-06" if state == "created" else "M-07"
        yield f"{end.name} is {state}", (cite, Wire(up, event, is_event=True))
    handler = f"{remote}/p2phandler/1"
    link = stub if end.is_requester else f"{stub}/conn/{end.number}"
    orders: dict[str, JsonObject] = {
        "connect": {"params": [handler]},
        "disconnect": {"params": [remote], "link": link},
        "yield": {"params": [remote], "negotiation": 1},
        "resume": {"params": [remote], "negotiation": 1},
    }
    for method, body in orders.items():
        order = _message("execute", registry, stub, {"method": method, **body})
        cite = "M-11" if method == "connect" else "M-12"
        yield f"{end.name} shall {method}", (cite, Wire(down, order))
    if not end.is_requester:
        body = {"method": "disconnect", "params": [remote]}
        order = _message("execute", registry, stub, body)
        yield f"{end.own} hnd shall disconnect", ("M-12", Wire(down, order))
    if not end.is_requester:
        listen = _message("subscribe", registry, stub, {"resources": [link], "source": stub})
        yield f"{end.name} shall listen", ("M-05", Wire(down, listen))
