"""The actors: the runtime, the message node, the commands, and what supervises them.

A program that embeds them takes all names from here: `actors.open_node`,
`actors.open_runtime`, `actors.Hyperty` and others. A name is imported when it is first used;
type checkers see all of them.

`actors.kit` defines actors; `actors.runtime` and `actors.node` are built of it and
communicate only by messages on links; `actors.embedding` and `actors.embedded_node` open them in a
program; `actors.commands` are the commands of a shell; `actors.testing` is for tests of
applications.
"""

from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from actors.modules import imported

if TYPE_CHECKING:
    from actors.catalogue.client import CatalogueAccess
    from actors.catalogue.errors import TrustFileError
    from actors.catalogue.memory import CatalogueStore
    from actors.catalogue.source import BadPlaceError, Places, read_places
    from actors.catalogue.trust_file import Trust, read_trust
    from actors.deployed import Deployed, DeployedApart
    from actors.embedded_node import open_node
    from actors.embedding import Runtime, open_runtime
    from actors.http.config import HttpConfig, HttpPlaceError, OpenMetricsError, ShownCatalogue
    from actors.keys.key_file import KeyFileError
    from actors.keys.key_set import BadKeysError
    from actors.keys.push import PushError, PushKeys
    from actors.keys.signing import SigningKey, read_key
    from actors.kit.back_ends.ice import IceFileError, IcePlan, ListedServer, read_ice
    from actors.kit.back_ends.requests import BackEndError
    from actors.kit.counters import Drop, DropLedger
    from actors.kit.errors import ActorStoppedError, RestartLimitError, TraceDirectoryError
    from actors.kit.http_client import HttpError, HttpUrlError, PlainUrlError, ServerUrl
    from actors.kit.ids import IdSource
    from actors.kit.trace_file import open_trace
    from actors.node.app import Node
    from actors.node.config import Endpoint, ForeignPlan, NodeConfig
    from actors.node.connectors.back_ends import BackEnds
    from actors.node.connectors.global_registry import GlobalRecords
    from actors.node.connectors.push import PushConfig
    from actors.node.connectors.quality import QualityBroker
    from actors.node.errors import AddressTakenError, RegistryFileError, StateFileError
    from actors.node.limits import NodeLimits
    from actors.node.login.provider import (
        Admission,
        IdentityProvider,
        Login,
        LoginRefusedError,
        ProviderAwayError,
        ProviderMaker,
        UsedTokensError,
    )
    from actors.pipe.plan import SandboxEndedError, SandboxError, Spawn, TokenSource
    from actors.policy.store import PolicyConfig, PolicyFileError
    from actors.runtime.bus.pipeline import Interceptor, Objection, StagePlaceError
    from actors.runtime.config import RuntimeConfig
    from actors.runtime.discovery.identity_gui import IdentityGui
    from actors.runtime.discovery.search import RecordSearch, SearchError, Watching
    from actors.runtime.following import Following
    from actors.runtime.hyperty.handlers import handles
    from actors.runtime.hyperty.hyperty import (
        Hyperty,
        HypertyFailedError,
        HypertyState,
        Invited,
        Refused,
    )
    from actors.runtime.hyperty.typed import read_as
    from actors.runtime.isolation import HypertyLoadError, LoadStep, NoCodeError
    from actors.runtime.objects.children import Child, ChildChange, Children
    from actors.runtime.objects.observation import ObjectState, ObservedObject
    from actors.runtime.objects.participant import ObjectError, SchemaError
    from actors.runtime.objects.reported_object import ReportedObject
    from actors.runtime.policy import Policy
    from actors.runtime.registry.allocation import AllocationError
    from actors.runtime.registry.registrations import RegistrationError
    from actors.runtime.store.file import StoreFileError
    from actors.runtime.stubs.catalogue import NotInCatalogueError, WrongKindError
    from actors.runtime.stubs.credentials import (
        Credentials,
        CredentialsError,
        GivenToken,
        IdpCredentials,
        ReleaseError,
        SessionError,
        TokenFile,
    )
    from actors.runtime.stubs.token_sources import OAuthCredentials, TokenCommand
    from fsm.bus.listeners import ForwardRefusedError
    from fsm.limits.rates import Rate
    from fsm.limits.shares import SandboxTotals
    from fsm.p2p.dialling import LinkPolicy, P2pUse, P2pWait, PeerPolicy
    from fsm.policy.model import PolicySet
    from fsm.policy.terms import Algorithm, Result
    from fsm.registry.discovery import Change, EntryChange, FoundEntry
    from fsm.registry.node_rights import Names, Observation
    from fsm.registry.relay import RelayLimits
    from fsm.registry.resolve.links import Topology
    from fsm.sync.observers import ObserverJoined, ObserverLeft, ObserverMove
    from fsm.sync.value.json import NotJsonError
    from fsm.sync.value.value import ObjectChange
    from fsm.table import UnknownMachineError
    from specs.errors import AnswerError, BadMessageError, BadUrlError, ProtoflyError
    from specs.identity import SenderIdentity, VouchedBy
    from specs.jsonvalue import Json, JsonInput, JsonObject
    from specs.message import Message, MessageType
    from specs.reply_code import Code, DropReason
    from specs.routing import Check, Direction
    from transports.errors import (
        CertificateError,
        DialError,
        FrameTooLargeError,
        LinkBrokenError,
        LinkClosedError,
        LinkError,
        ListenError,
    )
    from transports.link import Kind, Link
    from transports.tls import TlsFileError

__all__ = [
    "ActorStoppedError",
    "AddressTakenError",
    "Admission",
    "Algorithm",
    "AllocationError",
    "AnswerError",
    "BackEndError",
    "BackEnds",
    "BadKeysError",
    "BadMessageError",
    "BadPlaceError",
    "BadUrlError",
    "CatalogueAccess",
    "CatalogueStore",
    "CertificateError",
    "Change",
    "Check",
    "Child",
    "ChildChange",
    "Children",
    "Code",
    "Credentials",
    "CredentialsError",
    "Deployed",
    "DeployedApart",
    "DialError",
    "Direction",
    "Drop",
    "DropLedger",
    "DropReason",
    "Endpoint",
    "EntryChange",
    "Following",
    "ForeignPlan",
    "ForwardRefusedError",
    "FoundEntry",
    "FrameTooLargeError",
    "GivenToken",
    "GlobalRecords",
    "HttpConfig",
    "HttpError",
    "HttpPlaceError",
    "HttpUrlError",
    "Hyperty",
    "HypertyFailedError",
    "HypertyLoadError",
    "HypertyState",
    "IceFileError",
    "IcePlan",
    "IdSource",
    "IdentityGui",
    "IdentityProvider",
    "IdpCredentials",
    "Interceptor",
    "Invited",
    "Json",
    "JsonInput",
    "JsonObject",
    "KeyFileError",
    "Kind",
    "Link",
    "LinkBrokenError",
    "LinkClosedError",
    "LinkError",
    "LinkPolicy",
    "ListedServer",
    "ListenError",
    "LoadStep",
    "Login",
    "LoginRefusedError",
    "Message",
    "MessageType",
    "Names",
    "NoCodeError",
    "Node",
    "NodeConfig",
    "NodeLimits",
    "NotInCatalogueError",
    "NotJsonError",
    "OAuthCredentials",
    "ObjectChange",
    "ObjectError",
    "ObjectState",
    "Objection",
    "Observation",
    "ObservedObject",
    "ObserverJoined",
    "ObserverLeft",
    "ObserverMove",
    "OpenMetricsError",
    "P2pUse",
    "P2pWait",
    "PeerPolicy",
    "Places",
    "PlainUrlError",
    "Policy",
    "PolicyConfig",
    "PolicyFileError",
    "PolicySet",
    "ProtoflyError",
    "ProviderAwayError",
    "ProviderMaker",
    "PushConfig",
    "PushError",
    "PushKeys",
    "QualityBroker",
    "Rate",
    "RecordSearch",
    "Refused",
    "RegistrationError",
    "RegistryFileError",
    "RelayLimits",
    "ReleaseError",
    "ReportedObject",
    "RestartLimitError",
    "Result",
    "Runtime",
    "RuntimeConfig",
    "SandboxEndedError",
    "SandboxError",
    "SandboxTotals",
    "SchemaError",
    "SearchError",
    "SenderIdentity",
    "ServerUrl",
    "SessionError",
    "ShownCatalogue",
    "SigningKey",
    "Spawn",
    "StagePlaceError",
    "StateFileError",
    "StoreFileError",
    "TlsFileError",
    "TokenCommand",
    "TokenFile",
    "TokenSource",
    "Topology",
    "TraceDirectoryError",
    "Trust",
    "TrustFileError",
    "UnknownMachineError",
    "UsedTokensError",
    "VouchedBy",
    "Watching",
    "WrongKindError",
    "handles",
    "open_node",
    "open_runtime",
    "open_trace",
    "read_as",
    "read_ice",
    "read_key",
    "read_places",
    "read_trust",
]

_PLACES: Final = MappingProxyType(
    {
        "actors.catalogue.client": ("CatalogueAccess",),
        "actors.catalogue.memory": ("CatalogueStore",),
        "actors.catalogue.source": ("Places", "read_places", "BadPlaceError"),
        "actors.catalogue.trust_file": ("Trust", "read_trust"),
        "actors.embedded_node": ("open_node",),
        "actors.embedding": ("Runtime", "open_runtime"),
        "actors.deployed": ("Deployed", "DeployedApart"),
        "actors.http.config": (
            "HttpConfig",
            "ShownCatalogue",
            "HttpPlaceError",
            "OpenMetricsError",
        ),
        "actors.keys.signing": ("SigningKey", "read_key"),
        "actors.kit.back_ends.ice": ("IcePlan", "ListedServer", "read_ice", "IceFileError"),
        "actors.kit.counters": ("Drop", "DropLedger"),
        "actors.node.app": ("Node",),
        "actors.node.config": ("Endpoint", "ForeignPlan", "NodeConfig"),
        "actors.kit.http_client": ("ServerUrl", "HttpError", "HttpUrlError", "PlainUrlError"),
        "actors.kit.ids": ("IdSource",),
        "actors.kit.trace_file": ("open_trace",),
        "actors.node.connectors.global_registry": ("GlobalRecords",),
        "actors.node.connectors.quality": ("QualityBroker",),
        "actors.node.limits": ("NodeLimits",),
        "actors.node.login.provider": (
            "Admission",
            "IdentityProvider",
            "Login",
            "ProviderMaker",
            "LoginRefusedError",
            "ProviderAwayError",
            "UsedTokensError",
        ),
        "actors.pipe.plan": ("Spawn", "TokenSource", "SandboxError", "SandboxEndedError"),
        "actors.policy.store": ("PolicyConfig", "PolicyFileError"),
        "actors.node.connectors.back_ends": ("BackEnds",),
        "actors.node.connectors.push": ("PushConfig",),
        "actors.keys.push": ("PushError", "PushKeys"),
        "actors.runtime.registry.allocation": ("AllocationError",),
        "actors.runtime.objects.children": ("Child", "ChildChange", "Children"),
        "actors.runtime.config": ("RuntimeConfig",),
        "actors.runtime.stubs.credentials": (
            "Credentials",
            "CredentialsError",
            "GivenToken",
            "IdpCredentials",
            "ReleaseError",
            "SessionError",
            "TokenFile",
        ),
        "actors.runtime.stubs.token_sources": ("OAuthCredentials", "TokenCommand"),
        "actors.runtime.following": ("Following",),
        "actors.runtime.hyperty.handlers": ("handles",),
        "actors.runtime.isolation": ("HypertyLoadError", "LoadStep", "NoCodeError"),
        "actors.runtime.hyperty.typed": ("read_as",),
        "actors.runtime.hyperty.hyperty": (
            "Hyperty",
            "HypertyFailedError",
            "HypertyState",
            "Invited",
            "Refused",
        ),
        "actors.runtime.bus.pipeline": ("Interceptor", "Objection", "StagePlaceError"),
        "actors.runtime.objects.participant": ("ObjectError", "SchemaError"),
        "actors.runtime.objects.observation": ("ObjectState", "ObservedObject"),
        "actors.runtime.policy": ("Policy",),
        "actors.runtime.registry.registrations": ("RegistrationError",),
        "actors.runtime.discovery.identity_gui": ("IdentityGui",),
        "actors.runtime.discovery.search": ("RecordSearch", "SearchError", "Watching"),
        "actors.runtime.objects.reported_object": ("ReportedObject",),
        "fsm.limits.rates": ("Rate",),
        "fsm.policy.model": ("PolicySet",),
        "fsm.policy.terms": ("Algorithm", "Result"),
        "fsm.registry.node_rights": ("Names", "Observation"),
        "fsm.registry.relay": ("RelayLimits",),
        "fsm.limits.shares": ("SandboxTotals",),
        "fsm.p2p.dialling": ("LinkPolicy", "P2pUse", "P2pWait", "PeerPolicy"),
        "fsm.registry.resolve.links": ("Topology",),
        "fsm.bus.listeners": ("ForwardRefusedError",),
        "fsm.table": ("UnknownMachineError",),
        "fsm.sync.value.value": ("ObjectChange",),
        "fsm.sync.value.json": ("NotJsonError",),
        "fsm.sync.observers": ("ObserverJoined", "ObserverLeft", "ObserverMove"),
        "fsm.registry.discovery": ("Change", "EntryChange", "FoundEntry"),
        "specs.errors": ("AnswerError", "ProtoflyError", "BadMessageError", "BadUrlError"),
        "specs.identity": ("SenderIdentity", "VouchedBy"),
        "specs.jsonvalue": ("Json", "JsonInput", "JsonObject"),
        "specs.message": ("Message", "MessageType"),
        "specs.reply_code": ("Code", "DropReason"),
        "specs.routing": ("Check", "Direction"),
        "transports.link": ("Kind", "Link"),
        "actors.kit.errors": ("ActorStoppedError", "RestartLimitError", "TraceDirectoryError"),
        "actors.node.errors": ("AddressTakenError", "RegistryFileError", "StateFileError"),
        "actors.kit.back_ends.requests": ("BackEndError",),
        "actors.keys.key_set": ("BadKeysError",),
        "transports.errors": (
            "CertificateError",
            "DialError",
            "FrameTooLargeError",
            "LinkBrokenError",
            "LinkClosedError",
            "LinkError",
            "ListenError",
        ),
        "actors.keys.key_file": ("KeyFileError",),
        "actors.runtime.stubs.catalogue": ("NotInCatalogueError", "WrongKindError"),
        "actors.runtime.store.file": ("StoreFileError",),
        "transports.tls": ("TlsFileError",),
        "actors.catalogue.errors": ("TrustFileError",),
    }
)
"""The module that defines each exported name."""


def _check_packages() -> None:
    """Refuse to go on if another module has the name of a package that this one needs.

    Raises:
        ImportError: There is one, such as a `specs.py` beside the program.
    """
    home = Path(__file__).parent.parent
    for name in ("fsm", "specs", "transports"):
        spec = find_spec(name)
        if spec is None or not spec.has_location or spec.origin is None:
            continue
        if spec.submodule_search_locations is None or Path(spec.origin).parent.parent != home:
            why = (
                f"{spec.origin} hides the package {name!r} of protofly; rename that file or folder"
            )
            raise ImportError(why, name=name, path=spec.origin)


_check_packages()

if not TYPE_CHECKING:  # to a type checker, another name is an error

    def __getattr__(name: str) -> object:
        for place, names in _PLACES.items():
            if name in names:
                return imported(place, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
