"""Records on disk: what is acknowledged survives whatever end the process finds (I-G3)."""

import contextlib

from actors.node.registry.record_file import SqliteRecords
from fsm.machines.registration import State
from fsm.registry.records import Row
from tests.support.node.node_peer import RB

ROW = Row("hyperty://a.ex/hb", RB, State.LIVE, 12.5, {"url": "hyperty://a.ex/hb", "k": [1]})


def rows_in(path):
    with contextlib.closing(SqliteRecords(path)) as records:
        return records.load()


async def test_rows_come_back_as_they_were(tmp_path):
    records = SqliteRecords(tmp_path / "r.sqlite")
    assert records.load() == []
    await records.commit(
        [(ROW.url, ROW), ("x://y/z", Row("x://y/z", RB, State.DISCONNECTED, 1.0, {}))]
    )
    await records.commit([("x://y/z", None)])
    records.close()
    records.close()

    assert rows_in(tmp_path / "r.sqlite") == [ROW]
