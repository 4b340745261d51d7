"""An end of a direct link whose stub does not run."""

from types import SimpleNamespace

from actors.runtime.p2p.signalling import EndHost
from fsm.p2p.dialling import DialPolicy
from fsm.p2p.link_end import LinkTerms, Role


def lone_end(context, remote, peer, role=Role.REQUESTER):
    stub = SimpleNamespace(
        context=context,
        policy=DialPolicy(()),
        kinds_left_out=set(),
        spawn=lambda *_: None,
    )
    return EndHost(stub, LinkTerms(context.config.runtime, remote, context.url, peer), role)
