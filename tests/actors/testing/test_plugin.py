"""The pytest plugin, as whoever writes an application uses it: in a pytest of his own."""

import subprocess
import sys

import pytest

HEAD = """
import actors
import pytest
import trio
from transports.link import Kind
from actors.testing.chaos.toxics import Bandwidth, Latency, ResetPeer, Slicer, Timeout

class Echo(actors.Hyperty):
    async def on_request(self, message):
        return message.body["value"]

async def pair(domain):
    return await domain["ra"].deploy(Echo), await domain["rb"].deploy(Echo)
"""

PASSING = """
async def test_an_answer(protofly_domain, protofly_trace, autojump_clock):
    async with protofly_domain("ra", "rb") as domain:
        here, there = await pair(domain)
        assert (await here.request(there.url, 7)).body["value"] == 7
        protofly_trace.assert_conformant()
    protofly_trace.assert_conformant()

async def test_a_real_clock_will_do(protofly_domain, protofly_trace):
    async with protofly_domain("ra") as domain:
        echo = await domain["ra"].deploy(Echo)
        assert (await echo.request(echo.url, 7)).code == 200
    protofly_trace.assert_conformant()

async def test_two_domains(protofly_domain, protofly_trace, autojump_clock):
    wanted = {"a.example": ("ra",), "b.example": ("rb",)}
    async with protofly_domain.several(wanted) as (a, b):
        here, there = await a["ra"].deploy(Echo), await b["rb"].deploy(Echo)
        assert there.url.startswith("hyperty://b.example/")
        assert (await here.request(there.url, 7)).body["value"] == 7
    protofly_trace.assert_conformant()

async def test_an_unknown_runtime_is_named(protofly_domain, autojump_clock):
    async with protofly_domain("ra", "rb") as domain:
        with pytest.raises(KeyError, match="a.example has no runtime 'rq'; there are: ra, rb"):
            domain["rq"]

async def test_direct_links(protofly_domain, protofly_trace, autojump_clock):
    async with protofly_domain("ra", "rb", kinds=(Kind.TCP,)) as domain:
        here, there = await pair(domain)
        await here.request(there.url, 7)
        await trio.sleep(1)
        (link,) = await domain["ra"].links()
        assert link.status.value == "live"
    protofly_trace.assert_conformant()
"""

TOXICS = """
@pytest.mark.parametrize(
    "toxic", [Latency(0.5, jitter=0.1), Bandwidth(500), Slicer(10, 0.01)], ids=repr
)
async def test_slowness(toxic, protofly_domain, protofly_chaos, protofly_trace, autojump_clock):
    async with protofly_domain("ra", "rb") as domain:
        here, there = await pair(domain)
        with protofly_chaos.toxic(toxic, between=("ra", "a.example")):
            begun = trio.current_time()
            assert (await here.request(there.url, "x" * 100)).code == 200
            assert trio.current_time() - begun > 0.2
        begun = trio.current_time()
        assert (await here.request(there.url, "x" * 100)).code == 200
        assert trio.current_time() == begun
    protofly_trace.assert_conformant()

async def test_reset(protofly_domain, protofly_chaos, protofly_trace, autojump_clock):
    async with protofly_domain("ra", "rb") as domain:
        here, there = await pair(domain)
        assert protofly_chaos.reset("ra", "a.example") == 1
        assert (await here.request(there.url, 7)).code == 200
    protofly_trace.assert_conformant()

async def test_a_black_hole(protofly_domain, protofly_chaos, protofly_trace, autojump_clock):
    async with protofly_domain("ra", "rb") as domain:
        here, there = await pair(domain)
        with protofly_chaos.toxic(Timeout(60), between=("ra", "a.example")):
            assert (await here.request(there.url, 7)).code in {408, 503}
        await trio.sleep(60)
        assert (await here.request(there.url, 7)).code == 200
    protofly_trace.assert_conformant()
"""


def run_pytest(folder, text, *args):
    (folder / "pytest.ini").write_text("[pytest]\ntrio_mode = true\nfilterwarnings = error\n")
    (folder / "test_application.py").write_text(HEAD + text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *args]
    return subprocess.run(  # noqa: S603 - the tests are ours
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("text", "count"), [(PASSING, 5), (TOXICS, 5)], ids=["calm", "chaos"])
def test_tests_that_pass(text, count, tmp_path):
    done = run_pytest(tmp_path, text)
    assert f"{count} passed" in done.stdout, done.stdout
    assert done.returncode == 0


FAILING = """
async def test_it(protofly_domain, protofly_trace, autojump_clock):
    async with protofly_domain("ra") as domain:
        echo = await domain["ra"].deploy(Echo)
        assert (await echo.request(echo.url, 7)).body["value"] == 8
"""


@pytest.mark.timeout(240)
def test_a_test_that_fails_shows_the_assertion_not_groups_of_nurseries(tmp_path):
    done = run_pytest(tmp_path, FAILING)
    assert "1 failed" in done.stdout
    assert "AssertionError: assert 7 == 8" in done.stdout
    # The one group is of the test's own nursery, which pytest-trio opens.
    assert done.stdout.count("Exception Group Traceback") == 1


@pytest.mark.timeout(240)
def test_the_fixtures_are_listed_and_nothing_else_is_imported(tmp_path):
    text = "import sys\ndef test_it():\n    assert 'trio' not in sys.modules\n"
    (tmp_path / "test_other.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:trio", "-p", "no:anyio"]
    done = subprocess.run(  # noqa: S603 - the tests are ours
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert "1 passed" in done.stdout, done.stdout
    listed = run_pytest(tmp_path, "", "--fixtures").stdout
    for name in ("protofly_chaos", "protofly_domain", "protofly_trace"):
        assert f"\n{name} -- " in listed
