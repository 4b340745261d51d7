"""What a trace says of messages, tables and links, held against the claims of the protocol."""

from fsm.claims.finding import Finding
from fsm.claims.judging import judge

__all__ = ["Finding", "judge"]
