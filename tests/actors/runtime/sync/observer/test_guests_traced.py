"""What is traced of who may observe is what was done, not what was asked for (I-D9)."""

import pytest

from specs.message import MessageType
from tests.support.report_world import Open, world


@pytest.mark.parametrize("kind", [MessageType.CREATE, MessageType.UNSUBSCRIBE])
async def test_refused_observers_are_not_traced(autojump_clock, kind):
    async with world() as w:
        sensor, other = await w.here.deploy(Open), await w.here.deploy(Open)
        async with sensor.report("ctxt", {}) as thing:
            await thing.allow(sensor.url)
            wanted = {"resource": thing.url, "observer": other.url}
            assert (await other.ask(f"{w.here.url}/sm", kind, wanted)).code == 403
        guests = [line.val for line in w.recorder.lines if line.table == "guests"]
        assert guests == [sensor.url]
