"""What reporters and observers do at a node, as peers from outside do it."""

from tests.support.wire_peer import WirePeer


async def an_object(reporter: WirePeer, *parts: str) -> str:
    """Let a reporter have an object, with the paths of its parts."""
    (address,) = await reporter.allocate("comm")
    resources = [f"{address}/{one}" for one in ("subscription", *parts)]
    answer = await reporter.paths("subscribe", *resources, source=reporter.runtime)
    assert answer["body"]["code"] == 200, answer
    return address


async def invite(reporter: WirePeer, object_: str, observer: WirePeer) -> str:
    """Let the reporter invite an observer, who accepts (M-34); return the observer's address."""
    (hyperty,) = await observer.allocate()
    sent = await reporter.say("create", f"{object_}/subscription", hyperty, source=object_, value={})
    await observer.answer(await observer.hear())
    assert (await reporter.answer_to(sent))["body"]["code"] == 200
    return hyperty


async def observe(reporter: WirePeer, object_: str, observer: WirePeer, *parts: str) -> None:
    """Let an observer hear of an object, as the protocol has it: invited, then by path (M-37)."""
    await invite(reporter, object_, observer)
    answer = await observer.paths("subscribe", *resources(object_, *parts), source=observer.runtime)
    assert answer["body"]["code"] == 200, answer


def resources(object_: str, *parts: str) -> list[str]:
    return [f"{object_}/{one}" for one in (parts or ("changes",))]


async def change(reporter: WirePeer, object_: str, value: object) -> None:
    """Publish a change of an object (M-40)."""
    await reporter.say(
        "update", object_, f"{object_}/changes", attribute="x", value=value, version=1
    )


def values(heard: list[dict]) -> list[object]:
    return [message["body"].get("value") for message in heard]
