"""Control follows the files of events, whatever the disk does."""

import asyncio
from types import SimpleNamespace

from edgestead.server.control import following

NOW_US = 1_795_468_935_000_000


class Index:
    """`ends` are what each look comes to, the last one for ever."""

    def __init__(self, *ends):
        self.ends = list(ends)
        self.over = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def follow(self, folder, now_us):
        assert now_us == NOW_US
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if len(self.ends) == 1:
            self.loop.call_soon_threadsafe(self.over.set)
        if isinstance(end, Exception):
            raise end
        return end


def test_it_goes_on_after_a_slice_a_look_and_a_failure(monkeypatch, caplog):
    for name in ("PAUSE_SECONDS", "LOOK_SECONDS", "FAILED_SECONDS"):
        monkeypatch.setattr(following, name, 0)

    async def script():
        index = Index(False, True, OSError(5, "Input/output error"), ValueError("odd"), True, True)
        context = SimpleNamespace(
            event_index=index, events_folder=None, events_turn=asyncio.Lock(), now_us=lambda: NOW_US
        )
        task = asyncio.create_task(following.follow_events(context))
        await asyncio.wait_for(index.over.wait(), 300)
        task.cancel()

    asyncio.run(script())
    assert "cannot be followed" in caplog.text
