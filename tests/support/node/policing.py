"""A node that judges by policies which a test writes."""

from pathlib import Path

from actors.node.login.provider import Admission
from actors.policy.store import PolicyConfig
from tests.support.node.issuer import Issuer, login_by, opened
from tests.support.node.node_peer import MN, RA, Peer, World

POLICY = f"{MN}/policy"


def rule(name: str, text: str) -> str:
    return f'[[policies.rules]]\nid = "{name}"\n{text}\n'


def one_policy(*rules: str, name: str = "s", combining: str = "firstApplicable") -> str:
    """A set of one policy `p` with these rules."""
    head = f'id = "{name}"\n[[policies]]\nid = "p"\nruleCombiningAlgorithm = "{combining}"\n'
    return head + "".join(rules)


def policed(folder: Path, *texts: str, **more: object) -> dict:
    """Options of a node that judges by these sets, one file each."""
    for number, text in enumerate(texts):
        (folder / f"{number}.toml").write_text(text)
    files = tuple(folder / f"{number}.toml" for number in range(len(texts)))
    return {"policies": PolicyConfig(files=files, **more)}


def optional_login(issuer: Issuer) -> dict:
    """Let in who has a token of this issuer, and who has none."""
    return {"login": login_by(issuer, admission=Admission.ANYBODY)}


async def logged_in(world: World, issuer: Issuer, runtime: str = RA, **claims: object) -> Peer:
    peer = await world.outsider(runtime)
    answer = await opened(peer, issuer.token(**claims))
    assert answer.code == 200, answer.body
    return peer


def rulings(world: World) -> list:
    return [fact for fact in world.tracer.facts if fact.k == "authz"]
