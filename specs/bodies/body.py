"""Every body of the message catalogue: one frozen class each (M-01..M-58).

Terminal actors read bodies into these and write them from these; routers never
do. Keys a class does not know are let be. A field that is `None` is left out on
the wire, and `null` is read as `None`. A body that breaks a limit or a rule, or
holds something else where an address is due, cannot be made: `BadMessageError`.
The classes stand in files by section of the catalogue; they are imported here.
"""

from typing import Final

import attrs

from specs.bodies.allocation import Allocate, Allocated, AllocationWish, Free
from specs.bodies.answer import (
    AddressesGiven,
    ChildrenTold,
    Done,
    Listed,
    ObjectCreated,
    ObjectShown,
    ObjectsResumed,
    Provisional,
    RecordFound,
    RecordsAway,
    RecordsFound,
    Refusal,
    SessionOpened,
    SessionResumed,
    Sourced,
    SubscriptionGranted,
    SubscriptionRenewed,
    TokenGiven,
    TurnGiven,
    ValueGiven,
)
from specs.bodies.connector import AskQuality, GlobalRecord, IdentityCall, QualityWish, TurnServer
from specs.bodies.delegation import HandOver, MoveAddress, Watching
from specs.bodies.link import Command, LinkStatus, ListChange, Nothing, Path
from specs.bodies.object import (
    Child,
    ChildName,
    ChildrenSign,
    CutPath,
    Delegate,
    Forward,
    ObserverList,
    ObserverName,
    ObserversChange,
    Resume,
    Wrapped,
)
from specs.bodies.policy import (
    AddPolicies,
    PoliciesChanged,
    PoliciesListed,
    PoliciesShown,
    PolicyBook,
    PolicyChange,
    PolicyCommand,
    PolicyEntry,
    ReadPolicies,
    RemovePolicies,
    ReplacePolicies,
)
from specs.bodies.registry import (
    Discover,
    FoundRecord,
    ReadRecord,
    Record,
    RecordChanged,
    Register,
    UpdateRecord,
)
from specs.bodies.session import SessionControl, SessionGranted, SessionParams, Status
from specs.bodies.sync import (
    Candidate,
    Change,
    ChangeObject,
    ConnectionData,
    ConnectionDescription,
    CreateObject,
    DataObject,
    EndReport,
    Invitation,
    InviteObservers,
    LinkRow,
    NewObject,
    ObjectAnew,
    ObjectName,
    Observe,
    Snapshot,
    Subscription,
)

BODIES: Final[tuple[type[attrs.AttrsInstance], ...]] = (
    # paths, links, registry changes
    Path, LinkStatus, ListChange, Command, LinkRow, ObjectName, Nothing,
    # stubs and sessions
    Status, SessionControl, SessionParams, SessionGranted,
    # allocation
    Allocate, AllocationWish, Allocated, Free,
    # registry
    Register, Record, FoundRecord, UpdateRecord, ReadRecord, RecordChanged, Discover,
    # objects
    CreateObject, NewObject, DataObject, Snapshot, InviteObservers, Invitation, Observe,
    ObjectAnew, Subscription, Change, ChangeObject, EndReport,
    ConnectionData, ConnectionDescription, Candidate,
    Forward, Wrapped, Child, ChildName, ChildrenSign, Resume, Delegate,
    ObserverName, ObserversChange, ObserverList, CutPath,
    HandOver, Watching, MoveAddress,
    # connectors
    IdentityCall, GlobalRecord, AskQuality, QualityWish, TurnServer,
    # policies
    ReadPolicies, AddPolicies, ReplacePolicies, RemovePolicies, PolicyCommand, PolicyEntry,
    PolicyBook, PolicyChange, PoliciesListed, PoliciesShown, PoliciesChanged,
    # answers
    Provisional, Refusal, Done, Sourced, Listed, SessionOpened, SessionResumed, AddressesGiven,
    RecordFound, RecordsFound, RecordsAway, ObjectCreated, ChildrenTold, ObjectShown,
    SubscriptionGranted, SubscriptionRenewed,
    ObjectsResumed, ValueGiven, TokenGiven, TurnGiven,
)  # fmt: skip
"""All classes of bodies and of their parts."""

__all__ = [
    "BODIES",
    "AddPolicies",
    "AddressesGiven",
    "Allocate",
    "Allocated",
    "AllocationWish",
    "AskQuality",
    "Candidate",
    "Change",
    "ChangeObject",
    "Child",
    "ChildName",
    "ChildrenSign",
    "ChildrenTold",
    "Command",
    "ConnectionData",
    "ConnectionDescription",
    "CreateObject",
    "CutPath",
    "DataObject",
    "Delegate",
    "Discover",
    "Done",
    "EndReport",
    "Forward",
    "FoundRecord",
    "Free",
    "GlobalRecord",
    "HandOver",
    "IdentityCall",
    "Invitation",
    "InviteObservers",
    "LinkRow",
    "LinkStatus",
    "ListChange",
    "Listed",
    "MoveAddress",
    "NewObject",
    "Nothing",
    "ObjectAnew",
    "ObjectCreated",
    "ObjectName",
    "ObjectShown",
    "ObjectsResumed",
    "Observe",
    "ObserverList",
    "ObserverName",
    "ObserversChange",
    "Path",
    "PoliciesChanged",
    "PoliciesListed",
    "PoliciesShown",
    "PolicyBook",
    "PolicyChange",
    "PolicyCommand",
    "PolicyEntry",
    "Provisional",
    "QualityWish",
    "ReadPolicies",
    "ReadRecord",
    "Record",
    "RecordChanged",
    "RecordFound",
    "RecordsAway",
    "RecordsFound",
    "Refusal",
    "Register",
    "RemovePolicies",
    "ReplacePolicies",
    "Resume",
    "SessionControl",
    "SessionGranted",
    "SessionOpened",
    "SessionParams",
    "SessionResumed",
    "Snapshot",
    "Sourced",
    "Status",
    "Subscription",
    "SubscriptionGranted",
    "SubscriptionRenewed",
    "TokenGiven",
    "TurnGiven",
    "TurnServer",
    "UpdateRecord",
    "ValueGiven",
    "Watching",
    "Wrapped",
]
