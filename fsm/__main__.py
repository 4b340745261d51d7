"""`python -m fsm`."""

from fsm.commands import cli

if __name__ == "__main__":
    cli(prog_name="python -m fsm")
