"""All places of the product that answer 503: "not now" (MSG-17, R11).

Each says why, and after how many seconds another attempt may succeed: `specs.message` adds both
to every answer 503 that lacks them. A refusal that another attempt does not change has another
code. A new place needs a row in `ANSWERS` that says why another attempt can help.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("actors", "fsm", "specs", "transports", "examples")
NAMES = {"UNAVAILABLE", "SERVICE_UNAVAILABLE"}

ANSWERS = {
    "actors/http/metrics.py::ReadyPage.__call__": "a part of the process is not ready yet",
    "actors/http/site.py::-": "the directory of the catalogue can be mounted or mended",
    "actors/node/bus.py::NodeBus._ask": "a component of the node is busy or starts",
    "actors/node/dashboard/pages.py::_Views.events": "another page is closed",
    "actors/node/connectors/back_ends.py::Connector.stop": "the node starts again",
    "actors/node/connectors/push.py::_busy": "the push service takes messages again",
    "actors/node/connectors/quality.py::-": "somebody gives resources back",
    "actors/node/group/group.py::-": "the node is a member again, or rows go",
    "actors/node/group/durable.py::-": "the engine is back, or the log has room",
    "actors/node/group/lookups.py::-": "the engine is back",
    "actors/node/group/lookups.py::Lookups.__init__": "what waits is looked up",
    "actors/node/group/carrier.py::Carrier._answer": "the other node can be reached",
    "actors/node/foreign.py::Onward.subscribe": "paths that are being set up get ready",
    "actors/node/login/connector.py::IdentityConnector.receive": "open assertions end",
    "actors/node/login/connector.py::IdentityConnector.validate": "open logins end",
    "actors/node/policy/domain.py::DomainPolicies.objection": "there are policies it can read",
    "actors/node/policy/engine.py::PolicyService._answer_reload": "what failed is mended",
    "actors/node/policy/engine.py::PolicyService._reload": "fewer wait for the files",
    "actors/node/bus.py::NodeBus.route": "runtimes come back to the node",
    "actors/node/registry/registry.py::DomainRegistry._do": "runtimes register again",
    "actors/node/registry/registry.py::_not_now": "the registry can be written, or read, again",
    "actors/node/session/exchange.py::Overload._shed_holder": "memory is free again",
    "actors/node/session/exchange.py::Exchange._send_foreign": "the stub sends what waits",
    "actors/node/session/session.py::Session._refuse_message": "the runtime comes back",
    "actors/node/session/opening.py::Logins.ask": "open logins end, or keys can be fetched",
    "actors/node/session/opening.py::Logins._verdict": "the provider can be reached",
    "actors/node/session/opening.py::Logins.overdue": "the provider answers",
    "fsm/registry/registration.py::RegistrationCore._create_refusal": "records expire",
    "actors/runtime/bus/message_bus.py::-": "waiting senders are found out",
    "actors/runtime/bus/message_bus.py::MessageBus._admit": "the node brings what is missing",
    "actors/runtime/bus/message_bus.py::MessageBus._deliver_child": "another path is set up",
    "actors/runtime/bus/message_bus.py::MessageBus._take": "open requests to the receiver end",
    "actors/runtime/bus/message_bus.py::MessageBus.refuse_full": "the queue empties",
    "actors/runtime/bus/message_bus.py::MessageBus._refuse_full_receiver": "it starts again",
    "actors/runtime/bus/message_bus.py::MessageBus.hand_back": "another link is set up",
    "actors/runtime/bus/message_bus.py::MessageBus.deliver": "the receiver reads its mailbox",
    "actors/runtime/bus/message_bus.py::MessageBus.try_report": "another life of it starts",
    "actors/runtime/bus/open_requests.py::OpenRequests.reject_late": "with a new id it is in order",
    "actors/runtime/bus/outbound.py::Outbound.ask": "the registry reads its mailbox",
    "actors/runtime/bus/outbound.py::Outbound.stub_left": "another stub is deployed",
    "actors/runtime/bus/outbound.py::Outbound._deliver": "another stub is deployed",
    "actors/runtime/discovery/identity_gui.py::IdentityGuiPart._at_once": "the user answers others",
    "actors/runtime/hyperty/host.py::HypertyHost._give_up": "others end, or it is started again",
    "actors/runtime/hyperty/host.py::HypertyHost._answer": "the hyperty is started again",
    "actors/runtime/hyperty/transfer.py::KeptBodies.answer": "other large bodies are read",
    "actors/runtime/isolation.py::SandboxMail._deliver": "a sandbox reads, or is started",
    "actors/runtime/isolation.py::SandboxMail.lost": "the sandbox reads",
    "actors/runtime/isolation.py::SandboxMail.send_request": "open requests of it end",
    "actors/runtime/isolation.py::SandboxMail.give_up": "another sandbox is started",
    "actors/runtime/p2p/stub.py::P2PHandler.take_invitation": "other links end",
    "actors/runtime/p2p/link.py::P2PLink.take": "the link sends what waits",
    "actors/runtime/stubs/client_server.py::ClientServerStub.handle": "open calls end",
    "actors/runtime/stubs/credentials.py::CredentialsError.__init__": "the provider is back",
    "actors/runtime/stubs/credentials.py::IdpCredentials._call": "the provider is back",
    "actors/runtime/sync/reporter.py::Report.receive": "open questions end",
    "actors/runtime/sync/reporter.py::Report._verify": "it is asked again",
    "actors/runtime/sync/reporter.py::Report.is_stuck": "the disk has room again",
    "actors/runtime/sync/reporter.py::Report._subscribe": "the reporter is back",
    "fsm/bus/chunks.py::-": "other large bodies are read",
    "fsm/catalogue/foreign.py::ForeignCore.sandbox_gone": "another sandbox is started",
    "fsm/catalogue/foreign.py::ForeignCore.sandbox_unreachable": "another sandbox is started",
    "fsm/catalogue/foreign.py::ForeignCore._no_route": "the pause ends",
    "fsm/catalogue/foreign.py::ForeignCore.sandbox_posted": "the stub reaches the domain again",
    "fsm/catalogue/foreign.py::ForeignCore._refuse_waiting": "the pause ends",
    "fsm/catalogue/foreign.py::ForeignCore._refuse_full": "the stub sends what waits",
    "fsm/group/policies.py::-": "the change under way is written, the node is a member again",
    "fsm/limits/shares.py::UserShares.refusal": "other users give something back",
    "actors/node/session/exchange.py::Exchange.fresh_request_shares": "open requests are answered",
    "fsm/limits/shares.py::UserQueue.__init__": "what waits is sent",
    "fsm/registry/allocation.py::-": "addresses are given back",
    "fsm/registry/changes.py::ChangesPublisher.time_over": "the link becomes live",
    "fsm/registry/relay.py::RelayCore.want": "open calls end",
    "fsm/registry/resolve/node_stubs.py::NodeStubs._remove": "the pause ends",
    "fsm/registry/resolve/node_stubs.py::NodeStubs.crashed": "the pause ends",
    "fsm/registry/resolve/node_stubs.py::NodeStubs.failed": "the pause ends",
    "fsm/registry/resolve/resolve.py::ResolveCore.stub_failed": "the pause ends",
    "fsm/registry/resolve/resolve.py::ResolveCore._ask_link": "a link becomes live",
    "fsm/registry/resolve/resolve.py::ResolveCore._ask_without_link": "a link becomes live",
    "fsm/session/node_session.py::waiting_shares": "a runtime of the user is back",
    "fsm/session/runtime_names.py::RuntimeNames.refusal": "names are released, or expire",
    "fsm/session/stub_client.py::_StubOutbox.refuse_all": "the node can be reached again",
    "fsm/session/stub_client.py::_StubOutbox.refuse_held": "the node has everything back",
    "fsm/session/stub_client.py::_StubOutbox.overflow": "the stub sends what waits",
    "fsm/session/stub_client.py::StubClientCore.send": "the node can be reached again",
    "fsm/session/stub_client.py::StubClientCore._fail": "another stub is deployed",
    "fsm/sync/reporter.py::ReportedObject._request": "observers leave",
    "fsm/sync/value/writes.py::WritesCore._refusal": "waiting writes are published",
    "specs/routing.py::-": "a stub is deployed after the pause",
    "examples/demo/robot.py::Robot.add_item": "entries are deleted",
    "examples/demo/robot.py::Robot.forget_one": "others leave",
    "examples/demo/robot.py::flush": "waiting writes are published",
    "examples/write_a_stub/package/shout_stub.py::ShoutStub._deliver": "the server answers",
    "examples/write_a_stub/package/shout_stub.py::ShoutStub._lost": "the server is back",
}
"""Why another attempt can help."""

OTHERS = {
    "actors/cli/own_runtime.py::-",
    "actors/kit/back_ends/requests.py::-",
    "actors/node/bus.py::NodeBus.answer",
    "actors/node/connectors/quality.py::HttpQualityBroker.reserve",
    "actors/node/connectors/quality.py::HttpQualityBroker.resources",
    "actors/node/connectors/push.py::-",
    "actors/runtime/hyperty/addresses.py::-",
    "actors/runtime/registry/allocation.py::AddressAllocation._claim",
    "actors/runtime/hyperty/transfer.py::_Upload.send",
    "actors/node/session/control.py::Control._open_by_login",
    "actors/runtime/bus/message_bus.py::MessageBus._may_come",
    "actors/runtime/bus/message_bus.py::MessageBus.refuse",
    "actors/runtime/objects/children.py::-",
    "actors/runtime/objects/children.py::Children._create",
    "actors/runtime/objects/participant.py::-",
    "actors/runtime/objects/live_value.py::Writes._version_there",
    "actors/runtime/sync/observer.py::-",
    "actors/runtime/sync/observer.py::Observed._leave",
    "fsm/explore/compositions/transaction.py::Component.crash",
    "fsm/registry/resolve/node_stubs.py::NodeStubs._refuse",
    "fsm/sync/subscriptions.py::ConsentCore._is_no",
    "specs/message.py::_answer",
    "specs/reply_code.py::-",
    "specs/reply_code.py::Code",
}
"""Places that read the code, or pass on that of a peer."""

AGAIN = (
    "fsm/group/policies.py::-",
    "actors/kit/back_ends/requests.py::-",
    "actors/node/group/group.py::-",
    "actors/node/group/durable.py::-",
    "actors/node/group/durable.py::-",
    "actors/runtime/isolation.py::SandboxMail._deliver",
    "fsm/limits/shares.py::UserShares.refusal",
    "fsm/session/stub_client.py::StubClientCore._fail",
    "fsm/session/stub_client.py::StubClientCore.send",
    "fsm/session/stub_client.py::StubClientCore.send",
    "specs/reply_code.py::-",
)
"""Places that do so more than once, one entry for each further time."""

WRITERS = {
    "actors/node/links/upstream.py::SessionAcceptor._write_answer": "upstream's form has no pause",
    "actors/node/session/control.py::Control.refuse_size": "413",
    "specs/message.py::_answer": "all others",
    "specs/message.py::malformed_answer": "502",
}
"""Places that write an answer."""

LASTING = {"MALFORMED", "UNAUTHENTICATED", "FORBIDDEN", "NOT_FOUND", "GONE", "TOO_LARGE"}
"""Codes of refusals that another attempt does not change."""


def is_unavailable(node):
    is_number = isinstance(node, ast.Constant) and type(node.value) is int and node.value == 503
    return is_number or (isinstance(node, ast.Attribute) and node.attr in NAMES)


def is_answer(node):
    """Whether a message is made that is an answer."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return False
    given = [*node.args, *(one.value for one in node.keywords)]
    return node.func.id == "Message" and any(
        isinstance(one, ast.Attribute) and one.attr == "RESPONSE" for one in given
    )


def is_false_hope(node):
    """Whether a call has a lasting code, and a text that asks for another attempt."""
    if not isinstance(node, ast.Call):
        return False
    codes = {one.attr for one in node.args if isinstance(one, ast.Attribute)}
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    hope = [one for one in texts if isinstance(one, str) and ("again" in one or "later" in one)]
    return bool(codes & LASTING and hope)


KINDS = (is_unavailable, is_answer, is_false_hope)


def places(tree, within="-"):
    """The nodes of each kind, by the classes and functions in which they are."""
    inner = "" if within == "-" else f"{within}."
    for node in ast.iter_child_nodes(tree):
        yield from ((kind, within) for kind in KINDS if kind(node))
        is_named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from places(node, f"{inner}{node.name}" if is_named else within)


@cache
def found():
    """Counted when a test wants it: every worker imports this file, and one runs it.

    The sources are read one by one: together, their trees take more memory than all else.
    """
    places_of = {kind: Counter() for kind in KINDS}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT)
            for kind, place in places(ast.parse(path.read_text())):
                places_of[kind][f"{name}::{place}"] += 1
    return places_of


def test_every_place_that_answers_503_is_listed_with_a_reason_to_try_again():
    rows = Counter([*ANSWERS, *OTHERS, *AGAIN])
    there = found()[is_unavailable]
    assert (there - rows, rows - there) == (Counter(), Counter())


def test_all_answers_are_written_where_503_gets_its_reason_and_its_pause():
    """One that is written elsewhere would have neither."""
    written = {place for place in found()[is_answer] if not place.startswith("fsm/explore/")}
    assert written == WRITERS.keys()


def test_no_lasting_refusal_asks_for_another_attempt():
    assert found()[is_false_hope] == {}


@pytest.mark.parametrize(
    "text",
    ["refuse(m, Code.NOT_FOUND, 'try again')", "Refused(Code.TOO_LARGE, f'{n} wait; ask later')"],
)
def test_a_lasting_refusal_that_asks_for_another_attempt_is_seen(text):
    assert [at for kind, at in places(ast.parse(text)) if kind is is_false_hope] == ["-"]
