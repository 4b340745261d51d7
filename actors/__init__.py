"""The actors: the runtime, the message node, the commands, and their supervision.

A program that embeds them takes all names from here: `actors.open_node`, `actors.open_runtime`,
`actors.Hyperty` and others. A name is imported when it is first used; type checkers see all of
them.

`actors.kit` defines actors; `actors.runtime` and `actors.node` are built on it and communicate only
by messages on links; `actors.embedding` and `actors.embedded_node` open them in a program;
`actors.commands` has the commands of the shell; `actors.testing` is for tests of applications.
"""

from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from actors.modules import import_name

if TYPE_CHECKING:
    from actors.catalogue.client import CatalogueAccess as CatalogueAccess
    from actors.catalogue.errors import TrustFileError as TrustFileError
    from actors.catalogue.memory import CatalogueStore as CatalogueStore
    from actors.catalogue.source import BadPlaceError as BadPlaceError
    from actors.catalogue.source import Places as Places
    from actors.catalogue.source import read_places as read_places
    from actors.catalogue.trust_file import Trust as Trust
    from actors.catalogue.trust_file import read_trust as read_trust
    from actors.deployed import Deployed as Deployed
    from actors.deployed import DeployedApart as DeployedApart
    from actors.embedded_node import open_node as open_node
    from actors.embedding import Runtime as Runtime
    from actors.embedding import open_runtime as open_runtime
    from actors.http.config import HttpConfig as HttpConfig
    from actors.http.config import HttpPlaceError as HttpPlaceError
    from actors.http.config import OpenMetricsError as OpenMetricsError
    from actors.http.config import ShownCatalogue as ShownCatalogue
    from actors.keys.key_file import KeyFileError as KeyFileError
    from actors.keys.key_set import BadKeysError as BadKeysError
    from actors.keys.push import PushError as PushError
    from actors.keys.push import PushKeys as PushKeys
    from actors.keys.signing import SigningKey as SigningKey
    from actors.keys.signing import read_key as read_key
    from actors.kit.back_ends.ice import IceFileError as IceFileError
    from actors.kit.back_ends.ice import IcePlan as IcePlan
    from actors.kit.back_ends.ice import ListedServer as ListedServer
    from actors.kit.back_ends.ice import read_ice as read_ice
    from actors.kit.back_ends.requests import BackEndError as BackEndError
    from actors.kit.counters import Drop as Drop
    from actors.kit.counters import DropLedger as DropLedger
    from actors.kit.errors import ActorStoppedError as ActorStoppedError
    from actors.kit.errors import NotTrioError as NotTrioError
    from actors.kit.errors import RestartLimitError as RestartLimitError
    from actors.kit.errors import TraceDirectoryError as TraceDirectoryError
    from actors.kit.http_client import HttpError as HttpError
    from actors.kit.http_client import HttpUrlError as HttpUrlError
    from actors.kit.http_client import PlainUrlError as PlainUrlError
    from actors.kit.http_client import ServerUrl as ServerUrl
    from actors.kit.ids import IdSource as IdSource
    from actors.kit.trace_file import open_trace as open_trace
    from actors.node.app import Node as Node
    from actors.node.config import Endpoint as Endpoint
    from actors.node.config import ForeignPlan as ForeignPlan
    from actors.node.config import NodeConfig as NodeConfig
    from actors.node.connectors.back_ends import BackEnds as BackEnds
    from actors.node.connectors.global_registry import GlobalRecords as GlobalRecords
    from actors.node.connectors.push import PushConfig as PushConfig
    from actors.node.connectors.quality import QualityBroker as QualityBroker
    from actors.node.errors import AddressTakenError as AddressTakenError
    from actors.node.errors import RegistryFileError as RegistryFileError
    from actors.node.errors import StateFileError as StateFileError
    from actors.node.limits import NodeLimits as NodeLimits
    from actors.node.login.provider import Admission as Admission
    from actors.node.login.provider import IdentityProvider as IdentityProvider
    from actors.node.login.provider import Login as Login
    from actors.node.login.provider import LoginRefusedError as LoginRefusedError
    from actors.node.login.provider import ProviderAwayError as ProviderAwayError
    from actors.node.login.provider import ProviderMaker as ProviderMaker
    from actors.node.login.provider import UsedTokensError as UsedTokensError
    from actors.pipe.plan import SandboxEndedError as SandboxEndedError
    from actors.pipe.plan import SandboxError as SandboxError
    from actors.pipe.plan import Spawn as Spawn
    from actors.pipe.plan import TokenSource as TokenSource
    from actors.policy.store import PolicyConfig as PolicyConfig
    from actors.policy.store import PolicyFileError as PolicyFileError
    from actors.runtime.bus.interceptor import Interceptor as Interceptor
    from actors.runtime.bus.interceptor import Objection as Objection
    from actors.runtime.bus.interceptor import StagePlaceError as StagePlaceError
    from actors.runtime.config import RuntimeConfig as RuntimeConfig
    from actors.runtime.discovery.identity_gui import IdentityGui as IdentityGui
    from actors.runtime.discovery.search import RecordSearch as RecordSearch
    from actors.runtime.discovery.search import SearchError as SearchError
    from actors.runtime.discovery.search import Watching as Watching
    from actors.runtime.following import Following as Following
    from actors.runtime.hyperty.handlers import handles as handles
    from actors.runtime.hyperty.hyperty import Hyperty as Hyperty
    from actors.runtime.hyperty.hyperty import HypertyFailedError as HypertyFailedError
    from actors.runtime.hyperty.hyperty import HypertyState as HypertyState
    from actors.runtime.hyperty.hyperty import Invited as Invited
    from actors.runtime.hyperty.hyperty import Refused as Refused
    from actors.runtime.hyperty.open_request import OpenRequest as OpenRequest
    from actors.runtime.hyperty.typed import read_as as read_as
    from actors.runtime.isolation import HypertyLoadError as HypertyLoadError
    from actors.runtime.isolation import LoadStep as LoadStep
    from actors.runtime.isolation import NoCodeError as NoCodeError
    from actors.runtime.objects.children import Child as Child
    from actors.runtime.objects.children import ChildChange as ChildChange
    from actors.runtime.objects.children import Children as Children
    from actors.runtime.objects.observation import ObjectState as ObjectState
    from actors.runtime.objects.observation import ObservedObject as ObservedObject
    from actors.runtime.objects.participant import ObjectError as ObjectError
    from actors.runtime.objects.participant import SchemaError as SchemaError
    from actors.runtime.objects.reported_object import ReportedObject as ReportedObject
    from actors.runtime.policy import Policy as Policy
    from actors.runtime.registry.allocation import AllocationError as AllocationError
    from actors.runtime.registry.registrations import RegistrationError as RegistrationError
    from actors.runtime.store.file import StoreFileError as StoreFileError
    from actors.runtime.stubs.catalogue import NotInCatalogueError as NotInCatalogueError
    from actors.runtime.stubs.catalogue import WrongKindError as WrongKindError
    from actors.runtime.stubs.credentials import Credentials as Credentials
    from actors.runtime.stubs.credentials import CredentialsError as CredentialsError
    from actors.runtime.stubs.credentials import GivenToken as GivenToken
    from actors.runtime.stubs.credentials import ReleaseError as ReleaseError
    from actors.runtime.stubs.credentials import SessionError as SessionError
    from actors.runtime.stubs.credentials import TokenFile as TokenFile
    from actors.runtime.stubs.login import IdpCredentials as IdpCredentials
    from actors.runtime.stubs.token_sources import OAuthCredentials as OAuthCredentials
    from actors.runtime.stubs.token_sources import TokenCommand as TokenCommand
    from fsm.bus.listeners import ForwardRefusedError as ForwardRefusedError
    from fsm.limits.rates import Rate as Rate
    from fsm.limits.shares import SandboxTotals as SandboxTotals
    from fsm.p2p.link_policy import LinkPolicy as LinkPolicy
    from fsm.p2p.link_policy import P2pUse as P2pUse
    from fsm.p2p.link_policy import P2pWait as P2pWait
    from fsm.p2p.link_policy import PeerPolicy as PeerPolicy
    from fsm.policy.model import PolicySet as PolicySet
    from fsm.policy.terms import Algorithm as Algorithm
    from fsm.policy.terms import Result as Result
    from fsm.registry.discovery import Change as Change
    from fsm.registry.discovery import EntryChange as EntryChange
    from fsm.registry.discovery import FoundEntry as FoundEntry
    from fsm.registry.node_rights import Names as Names
    from fsm.registry.node_rights import Observation as Observation
    from fsm.registry.relay import RelayLimits as RelayLimits
    from fsm.registry.resolve.topology import Topology as Topology
    from fsm.sync.observers import ObserverJoined as ObserverJoined
    from fsm.sync.observers import ObserverLeft as ObserverLeft
    from fsm.sync.observers import ObserverMove as ObserverMove
    from fsm.sync.value.json import NotJsonError as NotJsonError
    from fsm.sync.value.value import ObjectChange as ObjectChange
    from fsm.table import UnknownMachineError as UnknownMachineError
    from specs.bodies.object import ChildWindow as ChildWindow
    from specs.errors import AnswerError as AnswerError
    from specs.errors import BadMessageError as BadMessageError
    from specs.errors import BadUrlError as BadUrlError
    from specs.errors import ProtoflyError as ProtoflyError
    from specs.identity import SenderIdentity as SenderIdentity
    from specs.identity import VouchedBy as VouchedBy
    from specs.jsonvalue import Json as Json
    from specs.jsonvalue import JsonInput as JsonInput
    from specs.jsonvalue import JsonObject as JsonObject
    from specs.message import Message as Message
    from specs.message import MessageType as MessageType
    from specs.reply_code import Code as Code
    from specs.reply_code import DropReason as DropReason
    from specs.routing import Check as Check
    from specs.routing import Direction as Direction
    from transports.errors import CertificateError as CertificateError
    from transports.errors import DialError as DialError
    from transports.errors import FrameTooLargeError as FrameTooLargeError
    from transports.errors import LinkBrokenError as LinkBrokenError
    from transports.errors import LinkClosedError as LinkClosedError
    from transports.errors import LinkError as LinkError
    from transports.errors import ListenError as ListenError
    from transports.link import Kind as Kind
    from transports.link import Link as Link
    from transports.tls import TlsFileError as TlsFileError

_PLACES: Final = MappingProxyType(
    {
        "actors.catalogue.client": ("CatalogueAccess",),
        "actors.catalogue.errors": ("TrustFileError",),
        "actors.catalogue.memory": ("CatalogueStore",),
        "actors.catalogue.source": ("BadPlaceError", "Places", "read_places"),
        "actors.catalogue.trust_file": ("Trust", "read_trust"),
        "actors.deployed": ("Deployed", "DeployedApart"),
        "actors.embedded_node": ("open_node",),
        "actors.embedding": ("Runtime", "open_runtime"),
        "actors.http.config": (
            "HttpConfig",
            "HttpPlaceError",
            "OpenMetricsError",
            "ShownCatalogue",
        ),
        "actors.keys.key_file": ("KeyFileError",),
        "actors.keys.key_set": ("BadKeysError",),
        "actors.keys.push": ("PushError", "PushKeys"),
        "actors.keys.signing": ("SigningKey", "read_key"),
        "actors.kit.back_ends.ice": ("IceFileError", "IcePlan", "ListedServer", "read_ice"),
        "actors.kit.back_ends.requests": ("BackEndError",),
        "actors.kit.counters": ("Drop", "DropLedger"),
        "actors.kit.errors": (
            "ActorStoppedError",
            "NotTrioError",
            "RestartLimitError",
            "TraceDirectoryError",
        ),
        "actors.kit.http_client": ("HttpError", "HttpUrlError", "PlainUrlError", "ServerUrl"),
        "actors.kit.ids": ("IdSource",),
        "actors.kit.trace_file": ("open_trace",),
        "actors.node.app": ("Node",),
        "actors.node.config": ("Endpoint", "ForeignPlan", "NodeConfig"),
        "actors.node.connectors.back_ends": ("BackEnds",),
        "actors.node.connectors.global_registry": ("GlobalRecords",),
        "actors.node.connectors.push": ("PushConfig",),
        "actors.node.connectors.quality": ("QualityBroker",),
        "actors.node.errors": ("AddressTakenError", "RegistryFileError", "StateFileError"),
        "actors.node.limits": ("NodeLimits",),
        "actors.node.login.provider": (
            "Admission",
            "IdentityProvider",
            "Login",
            "LoginRefusedError",
            "ProviderAwayError",
            "ProviderMaker",
            "UsedTokensError",
        ),
        "actors.pipe.plan": ("SandboxEndedError", "SandboxError", "Spawn", "TokenSource"),
        "actors.policy.store": ("PolicyConfig", "PolicyFileError"),
        "actors.runtime.bus.interceptor": ("Interceptor", "Objection", "StagePlaceError"),
        "actors.runtime.config": ("RuntimeConfig",),
        "actors.runtime.discovery.identity_gui": ("IdentityGui",),
        "actors.runtime.discovery.search": ("RecordSearch", "SearchError", "Watching"),
        "actors.runtime.following": ("Following",),
        "actors.runtime.hyperty.handlers": ("handles",),
        "actors.runtime.hyperty.hyperty": (
            "Hyperty",
            "HypertyFailedError",
            "HypertyState",
            "Invited",
            "Refused",
        ),
        "actors.runtime.hyperty.open_request": ("OpenRequest",),
        "actors.runtime.hyperty.typed": ("read_as",),
        "actors.runtime.isolation": ("HypertyLoadError", "LoadStep", "NoCodeError"),
        "actors.runtime.objects.children": ("Child", "ChildChange", "Children"),
        "actors.runtime.objects.observation": ("ObjectState", "ObservedObject"),
        "actors.runtime.objects.participant": ("ObjectError", "SchemaError"),
        "actors.runtime.objects.reported_object": ("ReportedObject",),
        "actors.runtime.policy": ("Policy",),
        "actors.runtime.registry.allocation": ("AllocationError",),
        "actors.runtime.registry.registrations": ("RegistrationError",),
        "actors.runtime.store.file": ("StoreFileError",),
        "actors.runtime.stubs.catalogue": ("NotInCatalogueError", "WrongKindError"),
        "actors.runtime.stubs.credentials": (
            "Credentials",
            "CredentialsError",
            "GivenToken",
            "ReleaseError",
            "SessionError",
            "TokenFile",
        ),
        "actors.runtime.stubs.login": ("IdpCredentials",),
        "actors.runtime.stubs.token_sources": ("OAuthCredentials", "TokenCommand"),
        "fsm.bus.listeners": ("ForwardRefusedError",),
        "fsm.limits.rates": ("Rate",),
        "fsm.limits.shares": ("SandboxTotals",),
        "fsm.p2p.link_policy": ("LinkPolicy", "P2pUse", "P2pWait", "PeerPolicy"),
        "fsm.policy.model": ("PolicySet",),
        "fsm.policy.terms": ("Algorithm", "Result"),
        "fsm.registry.discovery": ("Change", "EntryChange", "FoundEntry"),
        "fsm.registry.node_rights": ("Names", "Observation"),
        "fsm.registry.relay": ("RelayLimits",),
        "fsm.registry.resolve.topology": ("Topology",),
        "fsm.sync.observers": ("ObserverJoined", "ObserverLeft", "ObserverMove"),
        "fsm.sync.value.json": ("NotJsonError",),
        "fsm.sync.value.value": ("ObjectChange",),
        "fsm.table": ("UnknownMachineError",),
        "specs.bodies.object": ("ChildWindow",),
        "specs.errors": ("AnswerError", "BadMessageError", "BadUrlError", "ProtoflyError"),
        "specs.identity": ("SenderIdentity", "VouchedBy"),
        "specs.jsonvalue": ("Json", "JsonInput", "JsonObject"),
        "specs.message": ("Message", "MessageType"),
        "specs.reply_code": ("Code", "DropReason"),
        "specs.routing": ("Check", "Direction"),
        "transports.errors": (
            "CertificateError",
            "DialError",
            "FrameTooLargeError",
            "LinkBrokenError",
            "LinkClosedError",
            "LinkError",
            "ListenError",
        ),
        "transports.link": ("Kind", "Link"),
        "transports.tls": ("TlsFileError",),
    }
)
"""The module that defines each exported name."""

__all__ = sorted(name for names in _PLACES.values() for name in names)  # noqa: PLE0605 - names


def _check_packages() -> None:
    """Refuse the import if another module hides a package that this one needs.

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
                return import_name(place, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
