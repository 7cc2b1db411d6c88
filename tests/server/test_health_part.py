"""Health at the start of control."""

import asyncio
from types import SimpleNamespace

import pytest

from edgestead.model.counters import private_page
from edgestead.server.health.control_part import HealthPart
from edgestead.server.health.lasting import Lasting

SECONDS_MAX = 300


@pytest.mark.parametrize("error", [OSError("no disk"), LookupError("odd row")])
def test_what_cannot_be_looked_at_keeps_control_from_no_start(tmp_path, caplog, error):
    def fail():
        raise error

    async def live():
        is_watched = asyncio.Event()
        part = HealthPart(
            SimpleNamespace(data_dir=tmp_path, last_words_fd=-1, tls_dir=None),
            pages={},
            page=private_page(),
            feed=None,
            storage=None,
            clock=SimpleNamespace(look=is_watched.set),
            has_managed_ruleset=False,
            set_levels=lambda: None,
            failing_sinks=tuple,
            kept_certificates=fail,
            node_certificate=lambda: None,
            late_zones=tuple,
            held_zones=tuple,
            ending_zones=tuple,
            troubled_catalogs=tuple,
            sign_in_trouble=str,
            cluster=lambda: None,
            nodes_away=tuple,
            say=lambda line: None,
            now_us=lambda: 0,
        )
        await part.open()
        await asyncio.wait_for(is_watched.wait(), SECONDS_MAX)
        part.close()

    asyncio.run(live())

    assert str(error) in caplog.text


def test_what_is_gone_for_a_look_begins_anew():
    lasting = Lasting()

    assert lasting.seconds(["a", "b"], 10.0) == (("a", 0.0), ("b", 0.0))
    assert lasting.seconds(["b"], 13.0) == (("b", 3.0),)
    assert lasting.seconds(["b", "a"], 15.0) == (("b", 5.0), ("a", 0.0))
