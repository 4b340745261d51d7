"""`python -m fsm`."""

from fsm.commands.group import cli

if __name__ == "__main__":
    cli(prog_name="python -m fsm")
