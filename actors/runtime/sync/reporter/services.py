"""What the themes of the reporter's end share: what serves every object reported here."""

from typing import final

import attrs

from actors.runtime.sync.context import Spawn, SyncContext
from actors.runtime.sync.messages import Tell
from actors.runtime.sync.presence.registration import ObjectPlaces
from actors.runtime.sync.reporter.children import ReportedChildren
from actors.runtime.sync.reporter.invitations import Invitations
from actors.runtime.sync.reporter.link_observers import ToldByLink
from actors.runtime.sync.reporter.listeners import ObjectDoors
from actors.runtime.sync.reporter.moved import MovedObjects
from actors.runtime.sync.reporter.observers import Audiences
from actors.runtime.sync.reporter.pending import PendingSubscriptions
from actors.runtime.sync.reporter.publishing import Publications
from actors.runtime.sync.reporter.stored import StoredReports
from fsm.sync.leases import LeasesCore

__all__ = ["ReporterParts", "reporter_parts"]


@final
@attrs.frozen
class ReporterParts:
    """One of each, for all objects reported here.

    Attributes:
        context: What the sync manager may use.
        spawn: Runs a task of it.
        tell: Tells it.
        places: What an object has outside of its reporter.
        moving: The same, of an object that changes hands.
        audiences: Their observers resources.
        children: Their children.
        doors: Their addresses.
        links: By which links observers are told.
        publications: What is published.
        pending: Who is to be decided on.
        invitations: Who was invited.
        stored: Which of them are stored, and which rest.
        leases: How long their observers may observe.
    """

    context: SyncContext
    spawn: Spawn
    tell: Tell
    places: ObjectPlaces
    moving: MovedObjects
    audiences: Audiences
    children: ReportedChildren
    doors: ObjectDoors
    links: ToldByLink
    publications: Publications
    pending: PendingSubscriptions
    invitations: Invitations
    stored: StoredReports
    leases: LeasesCore


def reporter_parts(context: SyncContext, spawn: Spawn, tell: Tell) -> ReporterParts:
    """Make the parts of one sync manager."""
    places = ObjectPlaces(context)
    audiences, children = Audiences(context), ReportedChildren(context)
    moving, links = MovedObjects(context, places), ToldByLink(context, spawn, tell)
    return ReporterParts(
        context=context,
        spawn=spawn,
        tell=tell,
        places=places,
        moving=moving,
        audiences=audiences,
        children=children,
        doors=ObjectDoors(places, audiences, children, moving),
        links=links,
        publications=Publications(context, links),
        pending=PendingSubscriptions(context, spawn, tell),
        invitations=Invitations(context),
        stored=StoredReports(context),
        leases=LeasesCore(),
    )
