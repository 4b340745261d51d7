"""Children of an object that is observed from another process, over real sockets (SYN-24)."""

import trio

import actors
from tests.actors.runtime.objects.children_guest import Guest
from tests.support.command import serving
from tests.support.report_world import Open

DOMAIN = "a.example"
HYPERTY = f"guest={Guest.__module__}:{Guest.__name__}"


async def values(children, wanted):
    with trio.fail_after(25):
        await trio.lowlevel.checkpoint()
        while [child.value for child in children.values()] != wanted:
            assert await children.wait_for_change()


async def test_two_processes_share_the_children_of_an_object():
    async with (
        serving("node", "--domain", DOMAIN, "--listen", "127.0.0.1:0", "--allow-legacy") as node,
        serving(
            "runtime", "--domain", DOMAIN, "--name", "rb", "--node", node.url, "--hyperty", HYPERTY
        ) as there,
        actors.open_runtime(DOMAIN, "ra", node=node.url) as here,
        await here.deploy(Open) as alice,
        alice.report("comm", {}) as thing,
    ):
        (guest,) = there.ready["hyperties"].values()
        first = await thing.children.create({"first": True})
        assert (await alice.request(guest, thing.url)).code == 200
        await values(thing.children, [{"first": True}, {"hello": 1}])
        await thing.children.create("hi")
        await values(thing.children, [{"first": True}, {"heard": "hi"}, "hi"])
        await first.delete()
        await values(thing.children, ["hi"])
