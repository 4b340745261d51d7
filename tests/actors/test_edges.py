"""What strangers met at the edges of addresses, names of domains and files."""

import pytest

import actors


@pytest.mark.parametrize("option", ["registry", "state"])
async def test_a_database_in_memory_is_no_file_of_a_node(option):
    config = actors.NodeConfig(domain="a.ex", **{option: ":memory:"})
    with pytest.raises(actors.ProtoflyError, match=":memory: names no file"):
        async with actors.open_node(config):
            pass
