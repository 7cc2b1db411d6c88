"""History is forgotten in the background, in portions, and what is kept is as configured."""

import asyncio

from edgestead.server.control.history import HistoryPart
from edgestead.store.writes import Writes
from edgestead.usecases.zone import history
from tests.support.api import CREDENTIALS, FIRST_US, LocalApi
from tests.support.barrier import StoreBarrier

DAY_US = 86_400_000_000


def test_what_is_too_much_or_too_old_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "FORGOTTEN_ROWS_MAX", 3)
    api = LocalApi(tmp_path)
    try:
        zone = f"/zones/{api.post('/zones', {'name': 'example.com'}).result['id']}"
        for last in range(1, 21):
            api.post(f"{zone}/dns_records", {"type": "A", "name": "www", "content": f"192.0.2.{last}"})

        async def forget(days):
            part = HistoryPart(
                StoreBarrier(api.store, Writes(api.store)),
                days=days,
                rows_max=5,
                audit_days=days,
                audit_octets_max=1 << 20,
                now_us=lambda: FIRST_US + 2 * DAY_US,
            )
            await part.forget()

        asyncio.run(forget(days=3))
        assert [change["sequence"] for change in api.get(f"{zone}/history").result] == [20, 19, 18, 17, 16]

        asyncio.run(forget(days=1))
        assert api.get(f"{zone}/history").result == []
        assert len(api.get(f"{zone}/dns_records").result) == 20
        assert api.get(f"/accounts/{CREDENTIALS.account_id}/audit_logs").result == []
    finally:
        api.close()
