"""What a domain has one version of at a time: its policies, and the files of its catalogue."""

from collections.abc import Callable
from typing import final

import attrs

from actors.node.catalogue.domain import DomainCatalogue
from actors.node.messages import CatalogueRead, PoliciesReread
from actors.node.policy.domain import DomainPolicies
from fsm.effects import Refused
from fsm.group.catalogue import CatalogueRow
from fsm.group.policies import PolicyRow
from fsm.group.rows_io import Change

__all__ = ["Agreed"]


@final
@attrs.frozen
class Agreed:
    """Passes rows on to what they are about; part of the bus's task."""

    policies: DomainPolicies
    catalogue: DomainCatalogue

    def begin(
        self, write: Callable[[Change], None], objection: Callable[[], Refused | None]
    ) -> None:
        """Work with a bus, which knows nothing of the engine yet.

        Args:
            write: Writes a row.
            objection: Returns why nothing can be written now; None: it can.
        """
        self.policies.begin(write, objection)
        self.catalogue.begin(write)

    @property
    def objection(self) -> Refused | None:
        """Why the node opens no sessions; None: it does."""
        return self.policies.objection

    def heed(self, event: PoliciesReread | CatalogueRead) -> None:
        """Take what the files of this node say."""
        match event:
            case PoliciesReread(book, reply):
                self.policies.propose(book, reply.send, is_of_files=True)
            case CatalogueRead(files):
                self.catalogue.looked(files)

    def there(self, row: PolicyRow | CatalogueRow) -> None:
        """Note a row of the engine."""
        match row:
            case PolicyRow():
                self.policies.there(row)
            case CatalogueRow():
                self.catalogue.there(row)

    def gone(self, row: PolicyRow | CatalogueRow) -> None:
        """Note that the engine does not have a row any more, or nothing that can be read."""
        match row:
            case PolicyRow():
                self.policies.there(None)
            case CatalogueRow(path):
                self.catalogue.gone(path)

    def written(self, key: str) -> None:
        """Note that the engine has what this node wrote.

        Args:
            key: Key of the row, which may be any.
        """
        self.policies.written(key)
        self.catalogue.written(key)

    def known(self) -> bool:
        """Note that the node is a member, and knows what the engine has. Idempotent.

        Returns:
            Whether the node knows by which policies it judges.
        """
        self.catalogue.known()
        return self.policies.known()

    def fenced(self) -> None:
        """Note that the node is no member any more."""
        self.policies.fenced()
        self.catalogue.fenced()
