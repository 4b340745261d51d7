"""What a source mentions is read from its syntax tree."""

import pytest

from fsm.machine_list import MACHINES
from fsm.static_check import dotted_name, mentions

SPELLINGS = {
    "by its class": "from fsm.machines.session import Trigger\nTrigger.CLOSE",
    "by another name": "from fsm.machines.session import Trigger as T\nf(T.CLOSE)",
    "by its module": "from fsm.machines import session\nsession.Trigger.CLOSE",
    "by its full name": "import fsm.machines.session\nfsm.machines.session.Trigger.CLOSE",
    "by the module under another name": "import fsm.machines.session as s\ns.Trigger.CLOSE",
    "in a pattern": (
        "from fsm.machines.session import Trigger\nmatch x:\n    case Trigger.CLOSE: pass"
    ),
    "imported where it is used": (
        "def f():\n    from fsm.machines.session import Trigger\n    return Trigger.CLOSE"
    ),
}

ELSEWHERE = {
    "a comment": "from fsm.machines.session import Trigger\n# Trigger.CLOSE",
    "a text": "from fsm.machines.session import Trigger\n'Trigger.CLOSE'",
    "an import alone": "from fsm.machines.session import Trigger",
    "the trigger of another machine": "from fsm.machines.address import Trigger\nTrigger.CLOSE",
    "a class of the same name": "class Trigger:\n    CLOSE = 1\nTrigger.CLOSE",
    "what a call returns": "from fsm.machines.session import Trigger\nTrigger().CLOSE",
}


@pytest.mark.parametrize("how", list(SPELLINGS))
def test_a_use_is_found(how):
    assert dotted_name(MACHINES["session"].triggers["CLOSE"]) in mentions(SPELLINGS[how])


@pytest.mark.parametrize("what", list(ELSEWHERE))
def test_other_mentions_are_not_found(what):
    assert dotted_name(MACHINES["session"].triggers["CLOSE"]) not in mentions(ELSEWHERE[what])
