"""Two domains as a stranger runs them, by the documents alone: nobody copies an address."""

import json

from tests.support.command import call, serving

BOB, ALICE = "user://b.example/bob", "user://a.example/alice"
ECHO = ("--hyperty", "greeter=actors.hyperties:Echo")


def node(domain):
    return ("node", "--domain", domain, "--allow-legacy")


def runtime(domain, url, name, user):
    return (
        "runtime", "--domain", domain, "--node", url, "--name", name, "--user", user, *ECHO,
    )  # fmt: skip


async def test_a_stranger_finds_and_asks_a_hyperty_of_another_domain():
    async with serving(*node("a.example")) as a, serving(*node("b.example")) as b:
        here = ("--domain", "a.example", "--node", a.url, "--foreign", f"b.example={b.url}")
        async with (
            serving(*runtime("a.example", a.url, "ra", ALICE)) as alice,
            serving(*runtime("b.example", b.url, "rb", BOB)) as bob,
        ):
            theirs = await call("find", *here, "--registry", "b.example", "--name", "greeter")
            assert theirs.status == 0
            assert [line.split()[2] for line in theirs.out[1:]] == [BOB]
            ours = await call("find", *here, "--name", "greeter", "--json")
            assert [json.loads(line)["runtime"] for line in ours.out] == [alice.url]

            there = ("--registry", "b.example", BOB, "greeter", '{"value": 1}')
            asked = await call("request", *here, *there)
            assert asked.status == 0, asked.err
            answer = json.loads(asked.out[0])
            assert (answer["code"], answer["value"]) == (200, {"value": 1})
            first = bob.ready["hyperties"]["greeter"]
            assert answer["sender"] == first
            missed = await call("request", *here, BOB, "greeter", "1")
            assert (missed.status, missed.out) == (1, [])
            assert "--registry" in missed.err[0]
            await bob.stop()
        async with serving(*runtime("b.example", b.url, "rb", BOB)) as again:
            assert again.ready["hyperties"]["greeter"] == first
            asked = await call("request", *here, *there)
            assert json.loads(asked.out[0])["sender"] == first
