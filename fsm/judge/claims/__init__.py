"""What a trace says of messages, tables and links, held against the claims of the protocol."""

from fsm.judge.claims.catalogue import judge
from fsm.judge.claims.finding import Finding

__all__ = ["Finding", "judge"]
