"""Records of one name: which may stand together, and how much fits."""

import pytest

A = {"type": "A", "content": "192.0.2.1"}
AAAA = {"type": "AAAA", "content": "2001:db8::5"}
CNAME = {"type": "CNAME", "content": "a.example.net"}
NS = {"type": "NS", "content": "ns1.example.net"}
TXT = {"type": "TXT", "content": "text"}
MX = {"type": "MX", "content": "mail.example.net", "priority": 1}

# (there, new, code): None when both may stand
PAIRS = (
    (A, CNAME, 81053),
    (AAAA, CNAME, 81053),
    (CNAME, {**CNAME, "content": "b.example.net"}, 81053),
    (CNAME, A, 81054),
    (CNAME, AAAA, 81054),
    (A, NS, 81055),
    (AAAA, NS, 81055),
    (CNAME, NS, 81055),
    (NS, A, 81056),
    (NS, AAAA, 81056),
    (NS, CNAME, 81056),
    (A, AAAA, None),
    (A, TXT, None),
    (A, MX, None),
    (CNAME, TXT, None),
    (TXT, CNAME, None),
    (NS, TXT, None),
    (NS, {**NS, "content": "ns2.example.net"}, None),
    (A, {**A, "content": "192.0.2.2"}, None),
    (MX, {**MX, "priority": 2}, None),
    (TXT, {**TXT, "content": "TEXT"}, None),
)
DUPLICATES = (
    (A, A),
    (CNAME, {**CNAME, "content": "A.Example.NET."}),
    (TXT, {**TXT, "content": '"text"'}),
    (TXT, {**TXT, "content": '"te" "xt"'}),
    (MX, MX),
    (AAAA, {**AAAA, "content": "2001:DB8:0::5"}),
)


def ids(row):
    return row["type"] if isinstance(row, dict) else str(row)


@pytest.mark.parametrize(("there", "new", "code"), PAIRS, ids=ids)
def test_types_of_one_name(api, records, there, new, code):
    api.post(records, {"name": "a", **there})

    answer = api.post(records, {"name": "a", **new})

    assert answer.codes == ([] if code is None else [code])
    assert len(api.get(records).result) == (1 if code else 2)


@pytest.mark.parametrize(("there", "new", "code"), PAIRS, ids=ids)
def test_a_record_that_moves_to_the_name_meets_the_same_rules(api, records, there, new, code):
    api.post(records, {"name": "a", **there})
    moving = api.post(records, {"name": "b", **new}).result

    answer = api.patch(f"{records}/{moving['id']}", {"name": "a"})

    assert answer.codes == ([] if code is None else [code])
    assert api.get(f"{records}/{moving['id']}").result["name"][0] == ("b" if code else "a")


@pytest.mark.parametrize(("there", "new"), DUPLICATES, ids=ids)
def test_the_same_record_twice_is_identical(api, records, there, new):
    api.post(records, {"name": "a", **there})

    answer = api.post(records, {"name": "a", **new})

    assert (answer.status, answer.codes) == (400, [81058])
    assert "already exist" in answer.json["errors"][0]["message"]


@pytest.mark.parametrize(
    "other", [{"ttl": 60}, {"proxied": True}, {"comment": "x"}, {"tags": ["a:b"]}], ids=str
)
def test_the_same_content_with_other_attributes_exists_already(api, records, other):
    api.post(records, {"name": "a", **A})

    answer = api.post(records, {"name": "a", **A, **other})

    assert (answer.status, answer.codes) == (400, [81057])


def test_a_change_into_another_record_is_refused(api, records):
    api.post(records, {"name": "a", **A})
    second = api.post(records, {"name": "a", **A, "content": "192.0.2.2"}).result

    answer = api.patch(f"{records}/{second['id']}", {"content": "192.0.2.1"})

    assert answer.codes == [81058]
    assert api.get(f"{records}/{second['id']}").result == second


def test_a_record_is_no_conflict_with_itself(api, records):
    made = api.post(records, {"name": "a", **CNAME}).result

    assert api.put(f"{records}/{made['id']}", {"name": "a", **CNAME, "ttl": 60}).status == 200


def test_at_the_apex_ns_and_addresses_stand_together(api, records):
    for body in (NS, A, AAAA):
        assert api.post(records, {"name": "@", **body}).status == 200


def test_a_ds_follows_its_delegation(api, records):
    ds = {"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab" * 32}
    assert api.post(records, {"type": "DS", "name": "sub", "data": ds}).causes == [9007]

    api.post(records, {"name": "sub", **NS})

    assert api.post(records, {"type": "DS", "name": "sub", "data": ds}).status == 200


def test_text_of_one_name_has_a_limit_together(api, records):
    for number in range(4):
        api.post(records, {"type": "TXT", "name": "a", "content": str(number) * 2_030})

    answer = api.post(records, {"type": "TXT", "name": "a", "content": "x" * 200})

    assert (answer.status, answer.codes) == (400, [83011])
    assert api.post(records, {"type": "TXT", "name": "b", "content": "x" * 200}).status == 200


def test_the_limit_counts_what_was_written_not_how_it_is_cut_into_strings(api, records):
    for number in range(4):
        answer = api.post(records, {"type": "TXT", "name": "a", "content": str(number) * 2_048})
        assert answer.status == 200

    assert api.post(records, {"type": "TXT", "name": "a", "content": "x"}).codes == [83011]


def test_a_delegated_asterisk_of_before_may_be_kept_and_changed_and_no_other_may_come(
    api, records, monkeypatch
):
    monkeypatch.setattr("edgestead.usecases.change.neighbours.check_delegable", lambda draft, old: None)
    stored = api.post(records, {"name": "*.a", **NS}).result["id"]
    monkeypatch.undo()

    body = {"name": "*.a", **NS, "content": "ns3.example.net"}
    assert api.put(f"{records}/{stored}", body).status == 200
    assert api.patch(f"{records}/{stored}", {"comment": "old"}).status == 200
    assert api.patch(f"{records}/{stored}", {"name": "*.b"}).causes == [9000]
    assert api.post(records, {"name": "*.a", **NS}).causes == [9000]
    assert api.post(records, {"name": "b.*.a", **NS}).status == 200


def test_an_rrset_fits_in_one_dns_message(api, records, monkeypatch):
    monkeypatch.setattr("edgestead.usecases.limits.RRSET_OCTETS_MAX", 3 * 16)
    for number in range(3):
        api.post(records, {"type": "A", "name": "a", "content": f"192.0.2.{number}"})

    answer = api.post(records, {"type": "A", "name": "a", "content": "192.0.2.9"})

    assert answer.codes == [83011]
    assert api.post(records, {"name": "a", **AAAA}).status == 200


def test_a_zone_holds_so_many_records(api, records):
    api.limit(zone_records=2)
    first = api.post(records, {"name": "a", **A}).result
    api.post(records, {"name": "b", **A})

    assert api.post(records, {"name": "c", **A}).codes == [81045]
    api.delete(f"{records}/{first['id']}")
    assert api.post(records, {"name": "c", **A}).status == 200
