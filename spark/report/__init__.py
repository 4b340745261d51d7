"""Output for people: the report of a judgement, and exports of a trace."""
