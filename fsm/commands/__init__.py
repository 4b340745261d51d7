"""The commands of `python -m fsm`, one module each."""
