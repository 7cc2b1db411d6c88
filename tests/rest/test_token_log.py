"""Who changed tokens, and when each was last used."""

import asyncio
import json

import pytest

from edgestead.server.control.uses import UsesPart
from edgestead.store.writes import Writes
from edgestead.usecases.access import token_log
from edgestead.usecases.access.token_uses import TokenUses
from tests.rest.test_tokens import OWNERS, bearer, body
from tests.support.api import KEY_PAIR
from tests.support.barrier import StoreBarrier


@pytest.fixture(params=OWNERS)
def path(request):
    """Where the tokens of a user, then of an account are."""
    return OWNERS[request.param]


class TestLog:
    @pytest.mark.inside("what earlier tests did is told, too")
    def test_each_change_is_told_with_who_and_when(self, api, path):
        made = api.post(path, body()).result
        api.put(f"{path}/{made['id']}", body(name="renamed"), auth=KEY_PAIR)
        api.put(f"{path}/{made['id']}/value", {})
        api.delete(f"{path}/{made['id']}")

        found = api.get(f"{path}/history").result

        assert [one["action"] for one in found] == ["delete", "roll", "update", "create"]
        assert [one["token"]["name"] for one in found] == ["renamed", "renamed", "renamed", "ours"]
        assert {one["token"]["id"] for one in found} == {made["id"]}
        assert [one["made_by"]["token_id"] is None for one in found] == [False, False, True, False]
        assert sorted(one["made_on"] for one in found) == [one["made_on"] for one in reversed(found)]

    def test_it_holds_no_secret_and_no_policy(self, api, path):
        made = api.post(path, body()).result
        rolled = api.put(f"{path}/{made['id']}/value", {}).result

        text = json.dumps(api.get(f"{path}/history").result)

        assert made["value"] not in text
        assert rolled not in text
        assert "permission_groups" not in text

    @pytest.mark.inside("what earlier tests did is told, too")
    def test_a_refused_change_is_not_told(self, api, path):
        api.post(path, body(name=""))
        api.delete(f"{path}/{'f' * 32}")

        assert api.get(f"{path}/history").result == []

    @pytest.mark.inside("what earlier tests did is told, too")
    def test_each_owner_has_its_own_and_it_pages(self, api):
        for _ in range(3):
            api.post(OWNERS["user"], body())
        api.post(OWNERS["account"], body())

        page = api.get(f"{OWNERS['user']}/history?per_page=2&page=2").json

        assert (len(page["result"]), page["result_info"]["total_count"]) == (1, 3)
        assert len(api.get(f"{OWNERS['account']}/history").result) == 1

    def test_old_rows_and_rows_beyond_the_limit_are_forgotten(self, api):
        made = [api.post(OWNERS["user"], body()).result["id"] for _ in range(4)]

        def forget(rows_max, older_than_us):
            return api.store.write(lambda tx: token_log.forget(tx, rows_max, older_than_us)).result().value

        assert forget(2, 0)
        assert not forget(2, 0)
        found = [one["token"]["id"] for one in api.get(f"{OWNERS['user']}/history").result]
        assert found == list(reversed(made))[:2]
        assert forget(2, 1 << 62)
        assert api.get(f"{OWNERS['user']}/history").result == []


class TestLastUse:
    @pytest.mark.inside("invented time")
    def test_a_token_tells_when_it_was_last_used(self, api):
        made = api.post(OWNERS["user"], body()).result
        shown = f"{OWNERS['user']}/{made['id']}"
        assert "last_used_on" not in made
        assert "last_used_on" not in api.get(shown).result

        api.get("/user/tokens/verify", auth=bearer(made["value"]))

        assert api.get(shown).result["last_used_on"] == "2026-01-02T03:04:05Z"
        listed = {one["id"]: one.get("last_used_on") for one in api.get(OWNERS["user"]).result}
        assert listed[made["id"]] == "2026-01-02T03:04:05Z"
        assert api.put(shown, body()).result["last_used_on"] == "2026-01-02T03:04:05Z"

    def test_a_refused_use_is_none(self, api):
        made = api.post(OWNERS["user"], body(not_before="2027-01-01T00:00:00Z")).result

        assert api.get("/user/tokens/verify", auth=bearer(made["value"])).status == 401
        assert "last_used_on" not in api.get(f"{OWNERS['user']}/{made['id']}").result

    def test_it_survives_a_restart_and_goes_with_its_token(self, api):
        kept, gone = (api.post(OWNERS["user"], body()).result["id"] for _ in range(2))

        async def use(now_us, *token_ids):
            part = UsesPart(StoreBarrier(api.store, Writes(api.store)))
            part.open()
            for token_id in token_ids:
                part.uses.note(token_id, now_us)
            await part.close()
            return part.uses

        asyncio.run(use(1, kept, gone))
        api.delete(f"{OWNERS['user']}/{gone}")
        second = asyncio.run(use(2, kept))

        later = TokenUses()
        api.store.read(later.load)
        for uses in (second, later):
            assert [uses.last_us(one) for one in (kept, gone)] == [2, None]
        assert later.unwritten() == {}
