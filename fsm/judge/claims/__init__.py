"""What a trace says of messages, tables and links, held against the claims of the protocol."""

from fsm.judge.claims.finding import Finding
from fsm.judge.claims.judging import judge

__all__ = ["Finding", "judge"]
