"""Logic of the protocol: declared state machines, cores without input or output, and trace judges.

The code uses no Trio, no clock, no logs, no input or output: time and randomness are arguments.
`fsm.machine(name)` is for applications: it returns the state machine that a runtime itself uses.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transitions import Machine

__all__ = ["machine"]


def machine(name: str) -> "Machine":
    """Return a declared state machine as the `transitions.Machine` that entities use.

    It is the same object for a whole process, so leave its states and transitions as they are. A
    model's `on_enter_<state>` and `on_exit_<state>` are called, with `_` for each hyphen of the
    state; transitions of a runtime's own entities call nothing. To let a model follow these, see
    `Runtime.follow`. If a guard decides, `given` names the conditions that are true:
    `model.trigger("changed", given={"gap"})`.

    Args:
        name: As in `python -m fsm list`, such as `p2p_connection`.

    Raises:
        UnknownMachineError: There is none of that name; the error has the nearest.
    """
    # A program that imports a part of this package does not load all machines.
    from fsm.engine import machine_of  # noqa: PLC0415
    from fsm.machine_list import table_named  # noqa: PLC0415

    return machine_of(table_named(name))
