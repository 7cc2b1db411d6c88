"""REST: namespaces."""

import pytest

from edgestead.model.kv import NAMESPACES_PER_ACCOUNT_MAX, TITLE_CHARACTERS_MAX
from edgestead.model.refusals import Unavailable

from .api import ACCOUNT, NAMESPACES, Namespace

OLD_ALIAS = f"/accounts/{ACCOUNT}/workers/namespaces"
UNKNOWN = "f" * 32

BAD_TITLES = (
    ({}, "is missing"),
    ({"title": None}, "is missing"),
    ({"title": ""}, "is missing"),
    ({"title": "  "}, "is missing"),
    ({"title": 7}, "is missing"),
    ({"title": "x" * (TITLE_CHARACTERS_MAX + 1)}, "longer than 512 characters"),
    ({"title": "a\nb"}, "printable"),
)


def titles(answer):
    return [namespace["title"] for namespace in answer.result]


def make(api, title):
    return api.post(NAMESPACES, {"title": title}).result["id"]


def test_a_created_namespace_has_id_title_and_says_how_keys_are_written(api):
    made = api.post(NAMESPACES, {"title": "things"}).result

    assert made == {"id": made["id"], "title": "things", "supports_url_encoding": True}
    assert next(iter(made)) == "id"
    assert api.get(f"{NAMESPACES}/{made['id']}").result == made


def test_a_jurisdiction_is_taken_and_ignored(api):
    made = api.post(NAMESPACES, {"title": "things", "jurisdiction": "eu"}).result

    assert "jurisdiction" not in made


def test_a_title_may_be_as_long_as_the_limit_and_hold_any_script(api):
    title = "é～😀 " * (TITLE_CHARACTERS_MAX // 4)

    assert api.post(NAMESPACES, {"title": title}).result["title"] == title


@pytest.mark.parametrize(("body", "reason"), BAD_TITLES)
def test_a_title_that_is_none_is_refused_and_makes_nothing(api, body, reason):
    answer = api.post(NAMESPACES, body)

    assert (answer.status, answer.codes) == (400, [10019])
    assert reason in answer.json["errors"][0]["message"]
    assert titles(api.get(NAMESPACES)) == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff"])
def test_a_body_that_is_no_object_is_refused(api, body):
    answer = api.post(NAMESPACES, body)

    assert (answer.status, answer.codes) == (400, [10012])


def test_a_title_is_its_own_in_the_account(api):
    first, second = make(api, "one"), make(api, "two")

    create = api.post(NAMESPACES, {"title": "one"})
    rename = api.put(f"{NAMESPACES}/{second}", {"title": "one"})

    assert (create.status, create.codes) == (rename.status, rename.codes) == (400, [10014])
    assert create.json["errors"][0]["message"] == (
        "a namespace with this account ID and title already exists"
    )
    assert api.put(f"{NAMESPACES}/{first}", {"title": "one"}).status == 200


def test_a_renamed_namespace_keeps_id_and_keys(api, namespace):
    namespace.put("k", b"v")

    answer = api.put(namespace.path, {"title": "other"})

    assert answer.result == {"id": namespace.id, "title": "other", "supports_url_encoding": True}
    assert titles(api.get(NAMESPACES)) == ["other"]
    assert namespace.get("k").body == b"v"


def test_a_deleted_namespace_is_gone_with_its_keys(api, namespace):
    namespace.put("k", b"v")

    assert api.delete(namespace.path).result == {}

    assert (namespace.get("k").status, namespace.get("k").codes) == (404, [10013])
    assert api.delete(namespace.path).codes == [10013]
    assert api.kv.store.namespaces() == []
    assert make(api, "things") != namespace.id


@pytest.mark.inside("invented ids")
def test_lists_are_paged_and_ordered(api):
    for title in ("b", "c", "a"):
        make(api, title)

    answer = api.get(f"{NAMESPACES}?order=title&per_page=2")

    assert titles(answer) == ["a", "b"]
    assert answer.json["result_info"] == {
        "page": 1,
        "per_page": 2,
        "count": 2,
        "total_count": 3,
        "total_pages": 2,
    }
    assert titles(api.get(f"{NAMESPACES}?order=title&per_page=2&page=2")) == ["c"]
    assert titles(api.get(f"{NAMESPACES}?order=title&direction=desc")) == ["c", "b", "a"]
    assert titles(api.get(f"{NAMESPACES}?order=id")) == ["b", "c", "a"]  # the test's ids count upwards
    assert titles(api.get(f"{NAMESPACES}?page=9")) == []


@pytest.mark.parametrize("query", ["order=age", "direction=up", "page=x", "per_page=x"])
def test_a_query_that_means_nothing_is_refused(api, query):
    assert api.get(f"{NAMESPACES}?{query}").status == 400


def test_an_account_has_as_many_namespaces_as_the_limit(api):
    for number in range(NAMESPACES_PER_ACCOUNT_MAX):
        make(api, f"n{number}")

    answer = api.post(NAMESPACES, {"title": "one more"})

    assert (answer.status, answer.codes) == (400, [10022])
    assert len(api.get(f"{NAMESPACES}?per_page=1000").result) == NAMESPACES_PER_ACCOUNT_MAX


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize(
    ("id_", "status", "code"), [(UNKNOWN, 404, 10013), ("zz", 400, 10011), ("f" * 33, 400, 10011)]
)
def test_a_namespace_that_is_not_there_is_told_from_an_id_that_is_none(api, method, id_, status, code):
    answer = api.call(method, f"{NAMESPACES}/{id_}", {"title": "t"})

    assert (answer.status, answer.codes) == (status, [code])


def test_another_accounts_namespace_is_not_there(api, namespace):
    other = namespace.path.replace(ACCOUNT, "b" * 32)
    namespace.put("k")  # the server knows now whose it is

    assert api.get(other).codes == [10013]
    assert Namespace(api, namespace.id, NAMESPACES.replace(ACCOUNT, "b" * 32)).get("k").codes == [10013]
    assert api.post(NAMESPACES.replace(ACCOUNT, "b" * 32), {"title": "t"}).status == 404


def test_the_older_path_is_the_same_place(api, namespace):
    old = Namespace(api, namespace.id, OLD_ALIAS)

    old.put("a/b", b"v")

    assert namespace.get("a/b").body == old.get("a/b").body == b"v"
    assert titles(api.get(OLD_ALIAS)) == ["things"]
    assert old.bulk([{"key": "b", "value": "1"}]).result["successful_key_count"] == 1
    assert [key["name"] for key in old.keys().result] == ["a/b", "b"]


def test_another_method_is_not_allowed(api):
    answer = api.call("DELETE", NAMESPACES)

    assert (answer.status, answer.codes, answer.headers["allow"]) == (405, [10405], "GET, HEAD, POST")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_an_empty_id_at_the_end_of_the_path_is_another_method_of_the_list(api, method):
    assert api.call(method, f"{NAMESPACES}/", {"title": "t"}).codes == [10405]


@pytest.mark.parametrize("path", [NAMESPACES.replace(ACCOUNT, "zz"), f"{NAMESPACES}//keys"])
def test_a_path_with_an_account_or_id_that_is_none_leads_nowhere(api, path):
    answer = api.get(path)

    assert (answer.status, answer.codes) == (404, [7003, 7000])


def test_nobody_gets_in_without_credentials(api, namespace):
    assert api.get(NAMESPACES, auth={}).codes == [9106]
    assert api.get(NAMESPACES, auth={"authorization": "Bearer " + "x" * 40}).codes == [10000]


def test_a_member_that_stands_twice_is_refused(api, namespace):
    for answer in (
        api.post(NAMESPACES, b'{"title":"one","title":"two"}'),
        api.put(namespace.path, b'{"title":"one","x":[{"a":1,"a":2}]}'),
        api.post(f"{namespace.path}/bulk/get", b'{"keys":["a"],"keys":["b"]}'),
    ):
        assert (answer.status, answer.codes) == (400, [10012])
        assert "twice" in answer.json["errors"][0]["message"]


def test_a_deletion_whose_values_cannot_be_deleted_yet_has_succeeded(api, namespace, monkeypatch):
    """The namespace is gone; the sweep deletes what is left of it."""

    def refuse(id_):
        raise Unavailable

    monkeypatch.setattr(api.kv.store, "drop", refuse)

    assert api.delete(namespace.path).result == {}
    assert api.get(namespace.path).codes == [10013]
