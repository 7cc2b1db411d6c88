"""A token that ends while its request is under way: once its end is answered, the request changes nothing.

Every route of the table at every moment at which a request can wait: for its body, for what it reads, for
its commit, in the commit that ends the token, and in random orders of several requests. The objects' routes
are in tests/objects/test_revocation.py, a real server in tests/server/test_half_sent.py.
"""

import asyncio
import random
import threading
from contextlib import contextmanager

import pytest

from edgestead.model.permissions import BY_NAME
from edgestead.rest import kv_data
from edgestead.store.kv import INLINE_BYTES_MAX
from edgestead.tables import tokens
from edgestead.usecases.access import identities
from edgestead.usecases.access.authorise import secret_hash
from edgestead.usecases.access.identities import FedAccess
from tests.rest import test_tokens
from tests.rest.conftest import AT_NEWEST
from tests.rest.test_matrix import EVERYTHING, PRIVATE, USER, ask, ask_async, known, named  # noqa: F401
from tests.rest.tokens import RESTRICTED, TOKEN_ID, policy, put_token
from tests.support.api import BEARER, CREDENTIALS, KEY_PAIR, LocalApi
from tests.support.revocations import REVOCATIONS

pytestmark = AT_NEWEST

WRITES = [row for row in PRIVATE if row.method != "GET"]
READS = [row for row in PRIVATE if row.adds is None]
WAITING_READS = {  # at least
    "GET /zones/{zone_id}/history",
    "GET /zones/{zone_id}/dns_records/export",
    "POST /accounts/{account_id}/storage/kv/namespaces/{namespace}/bulk/get",
}
OF_TOKENS = ("tokens", "outbox", "feed_state")  # what a revocation itself changes
MADE_BEFORE = ["First token", "ours", "ours"]
# What they are asked for is never here, is always refused, or is only read.
WITHOUT_WRITE = {
    "POST /zones/{zone_id}/dns_records/scan",
    "POST /zones/{zone_id}/dns_records/scan/trigger",
    "POST /zones/{zone_id}/dns_records/scan/review",
    "POST /zones/{zone_id}/purge_cache",
    "DELETE /zones/{zone_id}/purge_cache",
    *(
        f"POST /accounts/{{account_id}}/{base}/namespaces/{{namespace}}/bulk/get"
        for base in ("storage/kv", "workers")
    ),
}


def _deleted(tx):
    tokens.delete(tx, TOKEN_ID)
    identities.forget_tokens(tx, (TOKEN_ID,))


def ended(how):
    """A write that ends SECRET."""

    def write(tx):
        (row,) = (row for row in tokens.tokens(tx) if row.id == TOKEN_ID)
        left = REVOCATIONS[how](row)
        if left is None:
            _deleted(tx)
        else:
            tokens.update(tx, left)
            identities.tell_token(tx, left)

    return write


@pytest.fixture
def give(api):
    """Let SECRET be a token that may do everything, again."""
    everywhere = {**EVERYTHING, USER.format(api.get("/user").result["id"]): "*"}

    def anew():
        api.store.write(_deleted).result()
        put_token(api, policy(*BY_NAME, resources=everywhere))

    anew()
    return anew


@pytest.fixture
def revoke(api):
    """End SECRET as another request does, up to its commit."""

    return lambda how="deleted": api.store.write(ended(how)).result()


def contents(api, *, without=()):
    """Every row of both databases, but for their count of commits: an empty one counts, too."""
    return [store.read(lambda reader: _rows(reader, without)) for store in (api.store, api.kv.store._readers)]


def _rows(reader, without):
    names = [name for (name,) in reader.rows("select name from sqlite_master where type = 'table'")]
    left_out = ("commits", *without)
    return {name: reader.rows(f"select * from {name}") for name in names if name not in left_out}


@contextmanager
def held(store):
    """Keep the writer's thread busy, so that what is queued becomes one commit, until what this gives is
    called.
    """
    begun, go_on = threading.Event(), threading.Event()

    def wait(tx):
        begun.set()
        assert go_on.wait(60)

    store.write(wait)
    assert begun.wait(60)
    try:
        yield go_on.set
    finally:
        go_on.set()


async def queued(store, count):
    while store.waiting < count:  # noqa: ASYNC110 - the writer's thread has no event to wait for
        await asyncio.sleep(0)


@pytest.mark.parametrize("how", REVOCATIONS)
def test_no_route_goes_on_when_its_token_ends_during_the_body(api, ask, give, revoke, how):  # noqa: F811
    held = []

    def meanwhile():
        revoke(how)
        held.append(contents(api))

    for row in WRITES:
        if row.body is not None or row.takes:
            answer = ask(row, RESTRICTED, meanwhile=meanwhile)

            assert answer.status in (401, 403), (named(row), answer.body)
            assert contents(api) == held.pop(), named(row)
            give()


@pytest.mark.parametrize("how", REVOCATIONS)
def test_no_write_commits_when_its_token_ended_before(api, ask, give, revoke, monkeypatch, how):  # noqa: F811
    """The end comes when the handler has the request's body and hands its write over."""
    held = []

    def first_revoked(write):
        def revoked(*arguments):
            revoke(how)
            held.append(contents(api))
            return write(*arguments)

        return revoked

    barrier, kv = api.app.context.barrier, api.kv.store
    for owner, name in ((barrier, "write"), (kv, "put"), (kv, "delete")):
        monkeypatch.setattr(owner, name, first_revoked(getattr(owner, name)))
    for row in WRITES:
        if named(row) not in WITHOUT_WRITE:
            answer = ask(row, RESTRICTED)

            assert answer.status in (401, 403), (named(row), answer.body)
            assert contents(api) == held.pop(), named(row)
            give()


@pytest.mark.parametrize("how", REVOCATIONS)
def test_no_read_that_waited_is_given_to_a_revoked_token(api, ask, give, revoke, how):  # noqa: F811
    """Reads that wait for nothing are answered at once."""
    waited = []

    def meanwhile():
        revoke(how)
        waited.append(named(row))

    for row in READS:
        answer = ask(row, RESTRICTED, meanwhile=meanwhile)

        if named(row) in waited:
            assert answer.status in (401, 403), (named(row), answer.body)
            give()
    assert set(waited) >= WAITING_READS


@pytest.mark.parametrize("how", REVOCATIONS)
def test_no_write_follows_a_revocation_in_its_own_commit(api, ask, give, monkeypatch, how):  # noqa: F811
    """Both wait for one commit, the revocation first."""
    barrier = api.app.context.barrier
    write = barrier.write

    async def behind_the_end(fn):
        with held(api.store) as go_on:
            api.store.write(ended(how))
            writing = asyncio.ensure_future(write(fn))
            await queued(api.store, 2)
            go_on()
        return await writing

    for row in WRITES:
        if named(row) in WITHOUT_WRITE or "/values/" in row.path or row.path.endswith(("/bulk", "/delete")):
            continue
        monkeypatch.setattr(barrier, "write", write)
        before = contents(api, without=OF_TOKENS)
        monkeypatch.setattr(barrier, "write", behind_the_end)
        answer = ask(row, RESTRICTED)

        assert answer.status in (401, 403), (named(row), answer.body)
        assert contents(api, without=OF_TOKENS) == before, named(row)
        assert [one.name for one in api.store.read(tokens.tokens) if one.id != TOKEN_ID] == MADE_BEFORE
        give()


def test_memory_follows_every_write_of_every_route(api, ask):  # noqa: F811
    """What is asked again is memory: no route may change who may call without it."""
    for row in WRITES:
        ask(row, BEARER)
        told = FedAccess()
        api.store.read(told.refresh)

        assert told._documents == api._fed._documents, named(row)


def test_a_revocation_is_answered_when_no_value_of_its_token_is_on_its_way_to_the_disk(
    api,
    known,  # noqa: F811
    give,
    monkeypatch,
):
    """The key-value store commits apart: a value that was let in before is decided before the answer."""
    path = f"/accounts/{CREDENTIALS.account_id}/storage/kv/namespaces/{known['accounts']['namespace']}"
    let_in, go_on = threading.Event(), threading.Event()
    settled = api.kv.settled

    def then(items, *checks):
        yield from items
        for check in checks:
            check()
        let_in.set()
        assert go_on.wait(60)

    async def settled_after_it_went_on():
        go_on.set()
        await settled()

    monkeypatch.setattr(kv_data, "_then", then)
    monkeypatch.setattr(api.kv, "settled", settled_after_it_went_on)

    async def put():
        headers = {"content-type": "text/plain"}
        answer = await api.call_async("PUT", f"{path}/values/late", b"v", auth=RESTRICTED, headers=headers)
        return answer.status

    async def delete():
        await asyncio.to_thread(let_in.wait, 60)
        answer = await api.call_async("DELETE", f"/user/tokens/{TOKEN_ID}")
        seen = contents(api)
        go_on.set()  # whatever the answer waited for
        return answer.status, seen

    written, (deleted, seen) = api.together(put(), delete())

    assert (written, deleted) == (200, 200)
    assert contents(api) == seen


SEEDS = range(12)
RACING = 6  # requests of one schedule
# What is in a namespace or a zone goes behind the commit that deletes it, as it does after a crash.
CLEARED_LATER = ("/namespaces/{namespace}", "/zones/{zone_id}")
RACING_ROWS = [
    row
    for row in WRITES
    if named(row) not in WITHOUT_WRITE and not (row.method == "DELETE" and row.path.endswith(CLEARED_LATER))
]


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_changes_behind_the_answer_to_a_revocation(api, ask_async, give, seed):  # noqa: F811
    """Several requests at a time, whose bodies arrive in portions, and a deletion in between."""
    chance = random.Random(seed)
    rows = chance.sample(RACING_ROWS, RACING)
    seen = []

    async def revoke():
        await turns(chance.randrange(12))
        answer = await api.call_async("DELETE", f"/user/tokens/{TOKEN_ID}")
        seen.append(contents(api))
        return answer.status

    async def slow(row):
        await turns(chance.randrange(6))
        return (await ask_async(row, RESTRICTED, pause=lambda: turns(chance.randrange(4)))).status

    deleted, *statuses = api.together(revoke(), *map(slow, rows))

    assert deleted == 200
    assert set(statuses) <= {200, 204, 400, 401, 403, 404, 409}, list(
        zip(map(named, rows), statuses, strict=True)
    )
    assert seen == [contents(api)]


async def turns(count):
    """Other tasks run, and so do the writers' threads."""
    for _ in range(count):
        await asyncio.sleep(0.001)


def test_a_token_that_ends_by_its_own_time_ends_for_its_request_too(api, records, give):
    now_us = next(api._clock_us)
    api.store.write(_deleted).result()
    put_token(api, policy("DNS Write", resources=EVERYTHING), expires_us=now_us + 500)
    record = {"type": "A", "name": "www", "content": "192.0.2.1"}

    def until_later():
        for _ in range(500):
            next(api._clock_us)

    assert api.post(records, record, auth=RESTRICTED).status == 200
    assert api.post(records, record | {"name": "b"}, auth=RESTRICTED, meanwhile=until_later).status == 403
    assert api.get(records).json["result_info"]["total_count"] == 1


def test_a_large_value_of_a_revoked_token_leaves_no_file(api, known, give, revoke, tmp_path):  # noqa: F811
    namespace = known["accounts"]["namespace"]
    path = f"/accounts/{CREDENTIALS.account_id}/storage/kv/namespaces/{namespace}/values/large"
    headers = {"content-type": "application/octet-stream"}
    value = b"x" * (INLINE_BYTES_MAX + 1)

    refused = api.put(path, value, auth=RESTRICTED, headers=headers, meanwhile=revoke)

    assert refused.status == 403
    assert api.get(path).status == 404
    assert not [file for file in (tmp_path / "kv-blobs").rglob("*") if file.is_file()]


def test_a_change_that_takes_nothing_away_lets_the_request_go_on(api, records, give):
    """Somebody else's token, or a wider right."""
    record = {"type": "A", "name": "www", "content": "192.0.2.1"}

    def others():
        api.store.write(_other_token).result()

    assert api.post(records, record, auth=RESTRICTED, meanwhile=others).status == 200
    assert api.post(records, record | {"name": "b"}, auth=KEY_PAIR, meanwhile=others).status == 200


def _other_token(tx):
    (row,) = (row for row in tokens.tokens(tx) if row.id == TOKEN_ID)
    other = row._replace(id="u" * 32, hash=secret_hash("x" * 40), issued_us=row.issued_us + 1)
    tokens.delete(tx, other.id)
    tokens.insert(tx, other)
    identities.tell_token(tx, other)


def test_a_successor_is_not_made_in_the_commit_that_ends_its_maker(api, give):
    """Both writes wait for one commit, the deletion first."""

    async def delete():
        return await api.call_async("DELETE", f"/user/tokens/{TOKEN_ID}", auth=BEARER)

    async def make():
        await queued(api.store, 1)
        return await api.call_async("POST", "/user/tokens", test_tokens.body(), auth=RESTRICTED)

    async def release():
        await queued(api.store, 2)
        go_on()

    with held(api.store) as go_on:
        deleted, made, _ = api.together(delete(), make(), release())

    assert (deleted.status, made.status, made.codes) == (200, 401, [1000])
    assert [one["name"] for one in api.get("/user/tokens").result] == ["First token"]


class Feed:
    """Consumers that have not applied anything until they are let."""

    def __init__(self):
        self.waits = asyncio.Event()
        self.applies = asyncio.Event()

    async def recovered(self):
        pass

    async def applied(self, sequence, *rest):
        self.waits.set()
        await self.applies.wait()


def test_a_token_is_dead_from_the_commit_on_and_not_from_the_answer(tmp_path, as_of):
    """Others may be slow to apply its end; control is not."""
    feed = Feed()
    feed.applies.set()
    api = LocalApi(tmp_path, as_of=as_of, feed=feed)
    made = api.post("/user/tokens", test_tokens.body()).result
    auth = {"authorization": f"Bearer {made['value']}"}
    assert api.get("/user/tokens/verify", auth=auth).status == 200
    feed.applies.clear()
    feed.waits.clear()

    async def use():
        await feed.waits.wait()
        answer = await api.call_async("GET", "/user/tokens/verify", auth=auth)
        feed.applies.set()
        return answer

    deleted, asked = api.together(api.call_async("DELETE", f"/user/tokens/{made['id']}"), use())

    assert (deleted.status, asked.status) == (200, 401)
    api.close()


def test_an_end_that_does_not_commit_ends_nothing(api, give):
    def ended_and_undone(tx):
        _deleted(tx)
        raise LookupError

    with pytest.raises(LookupError):
        api.store.write(ended_and_undone).result()

    assert api.get("/user", auth=RESTRICTED).status == 200


def test_a_list_that_waited_is_not_given_to_a_revoked_token(api, records, give, revoke, monkeypatch):
    barrier = api.app.context.barrier
    read_long = barrier.read_long

    async def revoked_while_it_waits(fn):
        revoke()
        return await read_long(fn)

    monkeypatch.setattr(barrier, "read_long", revoked_while_it_waits)

    assert api.get(records.replace("dns_records", "history"), auth=RESTRICTED).status == 403


def test_values_that_took_long_to_read_are_not_given_to_a_revoked_token(
    api,
    known,  # noqa: F811
    give,
    revoke,
    monkeypatch,
):
    """They are asked for by a POST, which only reads."""
    in_thread = api.kv.in_thread
    path = f"/accounts/{CREDENTIALS.account_id}/storage/kv/namespaces/{known['accounts']['namespace']}"

    async def revoked_while_it_waits(*work, **named):
        revoke()
        return await in_thread(*work, **named)

    assert api.post(f"{path}/bulk/get", {"keys": ["k"]}, auth=RESTRICTED).status == 200
    monkeypatch.setattr(api.kv, "in_thread", revoked_while_it_waits)

    assert api.post(f"{path}/bulk/get", {"keys": ["k"]}, auth=RESTRICTED).status == 403


BOUNDS = {
    "condition": {"request_ip": {"in": ["127.0.0.0/8"]}},
    "expires_on": "2026-02-01T00:00:00Z",
}


@pytest.fixture(params=test_tokens.OWNERS)
def bound(api, request):
    """All rights and BOUNDS, a user's or an account's: path, body without bounds, id, credentials."""
    resources, groups = EVERYTHING, [name for name in BY_NAME if BY_NAME[name].scope != "user"]
    if request.param == "user":
        resources, groups = {**EVERYTHING, USER.format(api.get("/user").result["id"]): "*"}, list(BY_NAME)
    path = test_tokens.OWNERS[request.param]
    free = test_tokens.body(test_tokens.policy(*groups, resources=resources))
    made = api.post(path, free | BOUNDS).result
    return path, free, made["id"], test_tokens.bearer(made["value"])


@pytest.mark.inside("invented time")
def test_a_bound_token_neither_frees_itself_nor_makes_a_free_one(api, bound):
    path, free, token_id, auth = bound
    before = api.get(f"{path}/{token_id}").result
    kept = ("policies", "condition", "expires_on", "modified_on")

    for sent in (free, *({**free, name: bound} for name, bound in BOUNDS.items())):
        for answer in (api.put(f"{path}/{token_id}", sent, auth=auth), api.post(path, sent, auth=auth)):
            assert (answer.status, answer.codes) == (403, [9109])
    after = api.get(f"{path}/{token_id}").result
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert api.post(path, free | BOUNDS, auth=auth).status == 200


@pytest.mark.inside("invented time")
def test_a_bound_token_touches_no_free_one_but_may_end_itself(api, bound):
    path, free, token_id, auth = bound
    other = api.post(path, free).result["id"]

    refused = (
        api.put(f"{path}/{other}/value", {}, auth=auth),
        api.put(f"{path}/{other}", free | BOUNDS, auth=auth),
        api.delete(f"{path}/{other}", auth=auth),
    )

    assert [(answer.status, answer.codes) for answer in refused] == [(403, [9109])] * 3
    assert api.get(f"{path}/{other}").result["status"] == "active"
    rolled = test_tokens.bearer(api.put(f"{path}/{token_id}/value", {}, auth=auth).result)
    assert api.delete(f"{path}/{token_id}", auth=rolled).status == 200


def test_a_narrow_token_ends_no_stronger_one(api):
    user = api.get("/user").result["id"]
    put_token(api, policy("API Tokens Write", resources=USER.format(user)))
    (first,) = (one["id"] for one in api.get("/user/tokens").result if one["name"] == "First token")

    assert api.delete(f"/user/tokens/{first}", auth=RESTRICTED).codes == [9109]
    assert api.put(f"/user/tokens/{first}", test_tokens.body(), auth=RESTRICTED).codes == [9109]
    assert api.get("/user").status == 200
    assert api.delete(f"/user/tokens/{TOKEN_ID}", auth=RESTRICTED).status == 200
