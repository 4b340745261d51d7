"""The actors of one runtime."""

from typing import final

import attrs

from actors.kit.counters import Counters
from actors.kit.supervision.actor import ActorRef
from actors.kit.supervision.monitor import Monitor
from actors.kit.trace import Tracer
from actors.runtime.bus.messages import BusMessage
from actors.runtime.bus.ports import CorePort
from actors.runtime.config import RuntimeConfig
from actors.runtime.following import Followers
from actors.runtime.registry.allocation import AllocationMessage
from actors.runtime.registry.registrations import RegistrarMessage
from actors.runtime.registry.registry import RegistryMessage
from actors.runtime.store.runtime_store import RuntimeStore
from actors.runtime.stubs.loader import LoaderMessage
from actors.runtime.stubs.sandbox import Sandboxes
from actors.runtime.sync.context import SyncMessage

__all__ = ["RuntimeParts"]


@final
@attrs.frozen
class RuntimeParts:
    """The actors of a runtime.

    Attributes:
        agent: The port of `R/ua`.
        store: What is stored.
        followers: The models of the application that go along with entities.
    """

    config: RuntimeConfig
    counters: Counters
    monitor: Monitor
    tracer: Tracer
    bus: ActorRef[BusMessage]
    agent: CorePort
    sandboxes: Sandboxes
    loader: ActorRef[LoaderMessage]
    registrar: ActorRef[RegistrarMessage]
    registry: ActorRef[RegistryMessage]
    allocation: ActorRef[AllocationMessage]
    sync_manager: ActorRef[SyncMessage]
    store: RuntimeStore
    followers: Followers
