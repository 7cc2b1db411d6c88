"""A batch: deletes, patches, puts and posts in one transaction, all of it or nothing."""

import pytest

from tests.rest.conftest import AT_NEWEST, WWW

EMPTY = {"deletes": [], "patches": [], "puts": [], "posts": []}
NOT_THERE = "f" * 32
MORE_THAN_ONE = {
    "deletes": [{"id": NOT_THERE}],
    "patches": [{"id": NOT_THERE, "ttl": 60}],
    "puts": [{**WWW, "id": NOT_THERE}],
}
# What is wrong with one change, and where the refusal points to; one more deletion goes before all of it.
REFUSED = {
    "posts content": (
        {"posts": [{**WWW, "name": "x"}, {**WWW, "content": "nope"}]},
        9005,
        "/posts/1/content",
    ),
    "posts duplicate": ({"posts": [WWW]}, 81058, "/posts/0"),
    "posts twice": ({"posts": [{**WWW, "name": "x"}] * 2}, 81058, "/posts/1"),
    "patch ttl": ({"patches": [{"id": "www", "ttl": 5}]}, 9021, "/patches/0/ttl"),
    "patch type": ({"patches": [{"id": "www", "type": "TXT"}]}, 9002, "/patches/0/type"),
    "put no name": ({"puts": [{"id": "www", "type": "A", "content": "192.0.2.1"}]}, 9000, "/puts/0/name"),
    "put other type": ({"puts": [{"id": "www", **WWW, "type": "TXT"}]}, 9002, "/puts/0/type"),
    "deleted twice": ({"deletes": [{"id": "www"}, {"id": "www"}]}, 81044, "/deletes/2"),
    "patched after its deletion": (
        {"deletes": [{"id": "www"}], "patches": [{"id": "www", "ttl": 60}]},
        81044,
        "/patches/0",
    ),
    "no id": ({"deletes": [{"id": "nonsense"}]}, 81044, "/deletes/1"),
    "the first of two": (
        {"puts": [{**WWW, "id": "www", "ttl": 5}], "posts": [{**WWW, "content": "nope"}]},
        9021,
        "/puts/0/ttl",
    ),
}
WRONG_SHAPES = (
    b"[]",
    b"null",
    b'{"deletes":{}}',
    b'{"deletes":[{}]}',
    b'{"patches":[{"ttl":60}]}',
    b'{"posts":[5]}',
)


@pytest.fixture
def batch(api, records):
    return lambda body: api.post(f"{records}/batch", body)


def with_id(body, record_id):
    """The body with this id in place of `www`."""
    return {
        name: [{**change, "id": record_id} if change.get("id") == "www" else change for change in changes]
        for name, changes in body.items()
    }


def test_the_four_lists_are_answered_with_whole_records(api, records, batch):
    made = [api.post(records, {**WWW, "name": name}).result for name in ("gone", "patched", "put")]
    gone, patched, put = (one["id"] for one in made)

    done = batch(
        {
            "posts": [{**WWW, "name": "new", "comment": "x", "tags": ["a:b"]}],
            "puts": [{"id": put, "type": "A", "name": "put", "content": "192.0.2.9"}],
            "patches": [{"id": patched, "ttl": 60}],
            "deletes": [{"id": gone}],
        }
    ).result

    assert list(done) == ["deletes", "patches", "puts", "posts"]
    assert done["deletes"] == [made[0]]
    assert (done["patches"][0]["id"], done["patches"][0]["ttl"]) == (patched, 60)
    assert (done["puts"][0]["content"], done["puts"][0]["ttl"]) == ("192.0.2.9", 1)
    assert (done["posts"][0]["comment"], done["posts"][0]["tags"]) == ("x", ["a:b"])
    stored = {record["id"]: record for record in api.get(records).result}
    assert stored == {record["id"]: record for name in ("patches", "puts", "posts") for record in done[name]}
    assert api.get(f"{records}?tag=a:b").result == done["posts"]


@pytest.mark.parametrize("body", [{}, {"posts": []}, {"deletes": None, "nonsense": 1}], ids=str)
def test_lists_that_were_not_sent_are_empty(api, batch, www, body):
    api.changes.clear()

    assert batch(body).result == EMPTY
    assert api.changes == []


def test_the_order_of_the_lists_decides_not_the_order_of_the_body(api, records, batch):
    old = api.post(records, {"type": "A", "name": "a", "content": "192.0.2.1"}).result

    done = batch(
        {
            "posts": [{"type": "CNAME", "name": "a", "content": "b.example.net"}],
            "deletes": [{"id": old["id"]}],
        }
    ).result

    assert [record["type"] for record in api.get(records).result] == ["CNAME"]
    assert done["posts"][0]["name"] == "a.example.com"


def test_changes_of_one_list_see_those_before_them(api, records, batch):
    first, second = (
        api.post(records, {**WWW, "name": name, "content": f"192.0.2.{n}"}).result["id"]
        for n, name in enumerate("ab")
    )
    content = {"content": "192.0.2.7"}

    batch({"patches": [{"id": first, **content}, {"id": second, "name": "c"}, {"id": first, "name": "b"}]})

    names = {record["id"]: record["name"] for record in api.get(records).result}
    assert names == {first: "b.example.com", second: "c.example.com"}


@pytest.mark.parametrize(("body", "code", "pointer"), REFUSED.values(), ids=REFUSED)
def test_one_refusal_undoes_everything(api, records, batch, www, body, code, pointer):
    other = api.post(records, {**WWW, "name": "other"}).result
    before = api.get(records).result
    api.changes.clear()
    whole = with_id(body, www.rpartition("/")[2])
    whole["deletes"] = [{"id": other["id"]}, *whole.get("deletes", [])]

    answer = batch(whole)

    assert (answer.status, answer.causes) == (404 if code == 81044 else 400, [code])
    assert f'"pointer":"{pointer}"'.encode() in answer.body
    assert api.get(records).result == before
    assert api.changes == []


@pytest.mark.parametrize("name", MORE_THAN_ONE)
def test_a_record_that_is_not_there_is_404(batch, name):
    answer = batch({name: MORE_THAN_ONE[name]})

    assert (answer.status, answer.codes) == (404, [81044])


def test_a_record_of_another_zone_is_not_touched(api, batch, records):
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    made = api.post(f"/zones/{other}/dns_records", WWW).result

    assert batch({"deletes": [{"id": made["id"]}]}).codes == [81044]
    assert api.get(f"/zones/{other}/dns_records/{made['id']}").result == made


@pytest.mark.parametrize("body", WRONG_SHAPES)
def test_another_shape_is_refused(batch, body):
    assert batch(body).codes == [9207]


@AT_NEWEST
@pytest.mark.parametrize(("plan", "changes_max"), [("free", 200), ("pro", 3_500), ("enterprise", 3_500)])
def test_a_batch_has_a_limit_by_plan(api, zone_id, batch, plan, changes_max):
    api.store.write(lambda tx: tx.run("update zones set plan = ? where id = ?", (plan, zone_id))).result(60)
    nobody = {"id": NOT_THERE}

    too_many = batch({"deletes": [nobody] * (changes_max // 2), "posts": [WWW] * (changes_max // 2 + 1)})
    enough = batch({"deletes": [nobody] * changes_max})

    assert (too_many.status, too_many.codes) == (400, [1001])
    assert str(changes_max) in too_many.json["errors"][0]["message"]
    assert enough.codes == [81044]


def test_a_batch_is_one_serial_and_one_document_a_name(api, batch):
    api.changes.clear()

    batch({"posts": [{**WWW, "content": f"192.0.2.{number}"} for number in range(1, 40)]})

    assert [change.kind for change in api.changes] == ["name", "log:journal", "zone"]


def test_quotas_count_what_the_batch_deletes(api, records, batch, www):
    api.limit(zone_records=1)
    new = {**WWW, "content": "192.0.2.8"}

    assert batch({"posts": [new]}).codes == [81045]
    assert batch({"deletes": [{"id": www.rpartition("/")[2]}], "posts": [new]}).status == 200
