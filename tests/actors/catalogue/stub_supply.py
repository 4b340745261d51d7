"""The catalogue of a runtime that is attacked by what it fetches.

Whatever would run any of it, or open a sandbox for it, raises.
"""

from hashlib import sha256

import attrs
import pytest

from actors.catalogue.client import CatalogueAccess
from actors.catalogue.errors import RefusedDescriptorError
from actors.catalogue.memory import CatalogueStore
from actors.catalogue.source import Places, package_path
from actors.catalogue.trust_file import Trust
from actors.keys.runtime_key import make_runtime_key
from actors.kit.counters import Counters, Tally
from actors.runtime.catalogue import Evidence, FetchingCatalogue, StubMakers
from actors.runtime.own_identity import OwnIdentity
from actors.runtime.stubs.catalogue import BuiltInCatalogue
from specs.trace import Kind, Op
from tests.support.catalogues import STUB_B, Publishing, Wall
from tests.support.trace.memory import MemoryTracer


def never(*_):
    pytest.fail("something of what was fetched would have been run")


@attrs.define
class Runtime:
    """The catalogue of a runtime, and what it may never do."""

    publishing: Publishing
    trust: Trust
    shelf: CatalogueStore = attrs.field(factory=CatalogueStore)
    tracer: MemoryTracer = attrs.field(factory=MemoryTracer)
    counters: Counters = attrs.field(factory=Counters)
    places: Places | None = None

    def catalogue(self):
        offset = Wall(self.publishing).offset
        places = self.places or self.publishing.places
        access = CatalogueAccess(places, self.trust, self.shelf, offset)
        makers = StubMakers({"websocket": never}, never)
        evidence = Evidence(self.tracer, self.counters, OwnIdentity(make_runtime_key()))
        return FetchingCatalogue(BuiltInCatalogue({}, {}), access, makers, evidence)

    async def found(self, entry=STUB_B):
        return await self.catalogue().find(entry.address)

    async def refused(self, reason, sentence):
        """See that the stub is refused so, in one sentence, in the trace, and counted."""
        with pytest.raises(RefusedDescriptorError) as caught:
            await self.found()
        reported = str(caught.value)
        assert reported.startswith("the protocolstub 'default' of b.ex is refused: ")
        assert sentence in reported
        assert "\n" not in reported
        [(_, fact)] = [one for one in self.tracer.records if one[1].k is Kind.DESCRIPTOR]
        assert (fact.op, fact.reason, fact.why) == (Op.REFUSED, reason, reported)
        tally = self.counters.tallies[Tally.DESCRIPTORS]
        assert {str(label[0]): count for label, count in tally.items()} == {reason: 1}


def runtime(domain, publishers=("acme",), **more):
    return Runtime(domain, domain.trust(publishers=publishers), **more)


def served_package(domain, archive):
    return package_path(sha256(archive).hexdigest())
