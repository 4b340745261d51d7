"""Commands of `python -m fsm`: each module implements one."""
