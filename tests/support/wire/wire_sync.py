"""What reporters and observers do at a node, as peers from outside do it."""

from tests.support.wire.wire_peer import WirePeer


async def an_object(reporter: WirePeer, *parts: str) -> str:
    """Let a reporter have an object, with the paths of its parts."""
    (address,) = await reporter.allocate("comm")
    resources = [f"{address}/{one}" for one in ("subscription", *parts)]
    answer = await reporter.paths("subscribe", *resources, source=reporter.runtime)
    assert answer["body"]["code"] == 200, answer
    return address


async def observe(reporter: WirePeer, object_: str, observer: WirePeer, *parts: str) -> None:
    """Let an observer hear of an object, as the protocol has it: path first, then consent."""
    answer = await observer.paths("subscribe", *resources(object_, *parts), source=observer.runtime)
    assert answer["body"]["code"] == 200, answer
    assert await asked(reporter, object_, observer, 200) == 200


async def asked(reporter: WirePeer, object_: str, observer: WirePeer, code: int) -> int:
    """Let an observer ask the reporter to observe (M-38), who answers with a code; return it."""
    sent = await observer.say(
        "subscribe", observer.part("sm"), f"{object_}/subscription", source=observer.runtime
    )
    await reporter.answer(await reporter.hear(), code, value={})
    return (await observer.answer_to(sent))["body"]["code"]


def resources(object_: str, *parts: str) -> list[str]:
    return [f"{object_}/{one}" for one in (parts or ("changes",))]


async def change(reporter: WirePeer, object_: str, value: object) -> None:
    """Publish a change of an object (M-40)."""
    await reporter.say(
        "update", object_, f"{object_}/changes", attribute="x", value=value, version=1
    )


def values(heard: list[dict]) -> list[object]:
    return [message["body"].get("value") for message in heard]
