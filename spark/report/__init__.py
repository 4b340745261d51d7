"""What a person reads: the report of a judgement, and exports of a trace."""
