"""CNAMEs that lead back to themselves through our zones are refused; everything else may be pointed to."""

import pytest

from edgestead.usecases import limits


@pytest.fixture(params=[False, True], ids=["dns only", "proxied"])
def alias(api, records, request):
    """Point a name to another; the record's path, or the codes of the refusal."""

    def point(name, target, path=records):
        body = {"type": "CNAME", "name": name, "content": target, "proxied": request.param}
        answer = api.post(path, body)
        return f"{path}/{answer.result['id']}" if answer.status == 200 else answer.causes

    return point


def test_a_target_that_is_nowhere_is_accepted(api, alias):
    for number, target in enumerate(("elsewhere.test", "nothing.example.com", "example.com")):
        assert isinstance(alias(f"n{number}", target), str)


def test_a_loop_is_refused_wherever_it_closes(api, records, alias):
    alias("a", "b.example.com")
    alias("b", "c.example.com")

    assert alias("c", "a.example.com") == [9007]
    assert alias("c", "A.Example.COM.") == [9007]
    assert isinstance(alias("c", "d.example.com"), str)
    assert alias("d", "b.example.com") == [9007]
    assert alias("e", "e.example.com") == [9007]


def test_a_loop_through_another_zone_is_refused(api, records, alias):
    other = f"/zones/{api.post('/zones', {'name': 'other.test'}).result['id']}/dns_records"
    below = f"/zones/{api.post('/zones', {'name': 'sub.example.com'}).result['id']}/dns_records"
    alias("a", "b.other.test")
    alias("b", "c.sub.example.com", other)

    assert alias("c", "a.example.com", below) == [9007]


def test_a_change_that_closes_a_loop_is_refused_and_changes_nothing(api, records, alias):
    a = alias("a", "b.example.com")
    b = alias("b", "elsewhere.test")
    before = api.get(records).result

    assert api.patch(b, {"content": "a.example.com"}).codes == [9007]
    assert api.put(b, {"type": "CNAME", "name": "b", "content": "a.example.com"}).codes == [9007]
    assert api.get(records).result == before
    api.delete(a)
    assert api.patch(b, {"content": "a.example.com"}).status == 200


def test_a_record_may_move_away_from_its_own_chain(api, records, alias):
    a = alias("a", "b.example.com")
    assert api.patch(a, {"name": "b", "content": "a.example.com"}).status == 200


def test_a_chain_has_a_limit(alias, monkeypatch):
    monkeypatch.setattr(limits, "ALIAS_HOPS_MAX", 3)
    for number in range(4):
        made = alias(f"n{number}", f"n{number - 1}.example.com" if number else "elsewhere.test")

    assert made == [9007]
