"""One record: created, shown, changed, replaced, deleted."""

import pytest

from tests.rest.conftest import WWW

# What is sent for each type, and what `content` is answered.
TYPES = {
    "A": ({"content": "192.0.2.1"}, "192.0.2.1"),
    "AAAA": ({"content": "2001:DB8::0:7"}, "2001:db8::7"),
    "CNAME": ({"content": "Target.example.net."}, "target.example.net"),
    "MX": ({"content": "mail.example.net", "priority": 0}, "mail.example.net"),
    "TXT": ({"content": "hello world"}, '"hello world"'),
    "NS": ({"content": "ns1.example.net"}, "ns1.example.net"),
    "PTR": ({"content": "host.example.net"}, "host.example.net"),
    "CAA": ({"data": {"flags": 0, "tag": "issue", "value": "ca.example"}}, '0 issue "ca.example"'),
    "CERT": ({"data": {"type": 1, "key_tag": 2, "algorithm": 8, "certificate": "AQID"}}, "1 2 8 AQID"),
    "SSHFP": ({"data": {"algorithm": 4, "type": 2, "fingerprint": "ab" * 32}}, "4 2 " + "ab" * 32),
    "TLSA": (
        {"data": {"usage": 3, "selector": 1, "matching_type": 1, "certificate": "cd" * 32}},
        "3 1 1 " + "cd" * 32,
    ),
    "SMIMEA": (
        {"data": {"usage": 3, "selector": 1, "matching_type": 1, "certificate": "cd" * 32}},
        "3 1 1 " + "cd" * 32,
    ),
    "HTTPS": (
        {"data": {"priority": 1, "target": ".", "value": ' alpn="h3,h2"'}},
        '1 . alpn="h3,h2"',
    ),
    "SVCB": ({"data": {"priority": 1, "target": "a.example.net.", "value": "port=8443"}}, None),
    "NAPTR": (
        {
            "data": {
                "order": 30,
                "preference": 100,
                "flags": "S",
                "service": "SIP+D2T",
                "regex": "",
                "replacement": "_sip._tcp.example.net.",
            }
        },
        '30 100 "S" "SIP+D2T" "" _sip._tcp.example.net.',
    ),
    "URI": (
        {"priority": 5, "data": {"weight": 1, "target": "http://example.net/x"}},
        '1 "http://example.net/x"',
    ),
    "LOC": ({"content": "37 46 46.000 N 122 23 35.000 W 0.00 100.00 0.00 0.00"}, None),
    "DHCID": ({"content": "AAIBY2/AuCccgoJb"}, "AAIBY2/AuCccgoJb"),
    "OPENPGPKEY": ({"content": "AQIDBA=="}, "AQIDBA=="),
}
REFUSED = {
    "no type": ({"name": "a", "content": "192.0.2.1"}, 9101),
    "unknown type": ({"type": "NONSENSE", "name": "a", "content": "x"}, 9002),
    "SPF": ({"type": "SPF", "name": "a", "content": "v=spf1 -all"}, 9002),
    "DNSKEY": ({"type": "DNSKEY", "name": "@", "content": "257 3 13 AQID"}, 9002),
    "no name": ({"type": "A", "content": "192.0.2.1"}, 9000),
    "two dots": ({"type": "A", "name": "a..b", "content": "192.0.2.1"}, 9000),
    "long label": ({"type": "A", "name": "a" * 64, "content": "192.0.2.1"}, 9000),
    "long name": ({"type": "TXT", "name": ".".join(["a" * 60] * 4), "content": "x"}, 9000),
    "digit first": ({"type": "A", "name": "1", "content": "192.0.2.1"}, 9000),
    "hyphen last": ({"type": "AAAA", "name": "a-", "content": "::1"}, 9000),
    "srv name": (
        {
            "type": "SRV",
            "name": "a",
            "data": {"priority": 1, "weight": 1, "port": 1, "target": "a.example.net"},
        },
        9000,
    ),
    "no content": ({"type": "A", "name": "a"}, 9101),
    "an empty name": ({"type": "A", "name": "", "content": "192.0.2.1"}, 9000),
    "a blank name": ({"type": "A", "name": " ", "content": "192.0.2.1"}, 9000),
    "not IPv4": ({"type": "A", "name": "a", "content": "nope"}, 9005),
    "short IPv4": ({"type": "A", "name": "a", "content": "192.0.2"}, 9005),
    "not IPv6": ({"type": "AAAA", "name": "a", "content": "192.0.2.1"}, 9006),
    "CNAME to itself": ({"type": "CNAME", "name": "a", "content": "A.example.com"}, 9007),
    "quotes": ({"type": "TXT", "name": "a", "content": '"these" ones"'}, 9007),
    "one quote": ({"type": "TXT", "name": "a", "content": '"this'}, 9007),
    "long TXT": ({"type": "TXT", "name": "a", "content": "x" * 2_049}, 9015),
    "no priority": ({"type": "MX", "name": "a", "content": "mail.example.net"}, 9101),
    "no member": ({"type": "SRV", "name": "_a._tcp", "data": {"priority": 1, "weight": 1, "port": 1}}, 9101),
    "edge address": ({"type": "A", "name": "a", "content": "203.0.113.1"}, 9003),
    "edge address in IPv6": ({"type": "AAAA", "name": "a", "content": "::ffff:203.0.113.1"}, 9003),
    "edge address in IPv6, as hex": ({"type": "AAAA", "name": "a", "content": "::FFFF:cb00:7101"}, 9003),
    "an asterisk delegated": ({"type": "NS", "name": "*.a", "content": "ns.example.net"}, 9000),
    "the zone's asterisk delegated": ({"type": "NS", "name": "*", "content": "ns.example.net"}, 9000),
    "edge address v6": ({"type": "AAAA", "name": "a", "content": "2001:DB8:0::1"}, 9003),
    "DS without NS": (
        {
            "type": "DS",
            "name": "a",
            "data": {"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab" * 32},
        },
        9007,
    ),
    "proxied MX": (
        {"type": "MX", "name": "a", "content": "m.example.net", "priority": 1, "proxied": True},
        9004,
    ),
    "proxied TXT": ({"type": "TXT", "name": "a", "content": "x", "proxied": True}, 9004),
    "comment lines": ({"type": "A", "name": "a", "content": "192.0.2.1", "comment": "a\nb"}, 9301),
    "long comment": ({"type": "A", "name": "a", "content": "192.0.2.1", "comment": "x" * 501}, 9301),
    "many tags": ({"type": "A", "name": "a", "content": "192.0.2.1", "tags": ["a:b"] * 21}, 9300),
    "tag name": ({"type": "A", "name": "a", "content": "192.0.2.1", "tags": ["a b:c"]}, 9301),
    "long tag name": ({"type": "A", "name": "a", "content": "192.0.2.1", "tags": ["x" * 33 + ":c"]}, 9301),
    "long tag value": ({"type": "A", "name": "a", "content": "192.0.2.1", "tags": ["x:" + "c" * 101]}, 9301),
    "both families": (
        {
            "type": "A",
            "name": "a",
            "content": "192.0.2.1",
            "proxied": True,
            "settings": {"ipv4_only": True, "ipv6_only": True},
        },
        9102,
    ),
}
TTLS = {1: 200, 60: 200, 86_400: 200, 0: 400, 59: 400, 30: 400, 86_401: 400, -1: 400, 10**30: 400}
NAMES = {
    "www": "www.example.com",
    "www.example.com": "www.example.com",
    "WWW.Example.COM.": "www.example.com",
    "@": "example.com",
    "example.com": "example.com",
    "www.other.test": "www.other.test.example.com",
    "*": "*.example.com",
    "_dmarc": "_dmarc.example.com",
    "münchen": "xn--mnchen-3ya.example.com",
}


@pytest.mark.parametrize(("type_", "sample"), TYPES.items(), ids=TYPES)
def test_every_type_is_made_and_shown_alike(api, records, type_, sample):
    sent, content = sample

    made = api.post(records, {"type": type_, "name": "_a._tcp", **sent}).result

    assert (made["type"], made["proxied"], made["ttl"]) == (type_, False, 1)
    assert made["proxiable"] is (type_ in ("A", "AAAA", "CNAME"))
    assert content is None or made["content"] == content
    assert api.get(f"{records}/{made['id']}").result == made
    assert api.get(records).result == [made]


@pytest.mark.parametrize("type_", ["CAA", "SSHFP", "TLSA", "NAPTR", "HTTPS", "CERT"])
def test_content_alone_makes_a_record_that_has_data(api, records, type_):
    made = api.post(records, {"type": type_, "name": "a", **TYPES[type_][0]}).result

    again = api.post(records, {"type": type_, "name": "b", "content": made["content"]}).result

    assert again["data"] == made["data"]


@pytest.mark.parametrize(("body", "code"), REFUSED.values(), ids=REFUSED)
def test_a_record_that_breaks_a_rule_is_refused_and_leaves_no_trace(api, records, body, code):
    answer = api.post(records, body)

    assert (answer.status, answer.causes) == (400, [code])
    assert api.get(records).result == []


@pytest.mark.parametrize(("name", "full"), NAMES.items())
def test_a_name_may_be_relative_full_or_the_apex(api, records, name, full):
    assert api.post(records, {**WWW, "name": name}).result["name"] == full


@pytest.mark.parametrize(("ttl", "status"), TTLS.items())
def test_a_ttl_is_automatic_or_within_its_bounds(api, records, ttl, status):
    answer = api.post(records, {**WWW, "ttl": ttl})

    assert answer.status == status
    assert answer.causes == ([] if status == 200 else [9021])


def test_a_type_may_be_written_in_any_case(api, records):
    assert api.post(records, {**WWW, "type": "a"}).result["type"] == "A"


def test_comment_and_tags_are_kept_and_told_since_when(api, records):
    tags = ["owner:dns-team", "prod", "owner:dns-team"]

    made = api.post(records, {**WWW, "comment": "for the über site", "tags": tags}).result

    assert (made["comment"], made["tags"]) == ("for the über site", ["owner:dns-team", "prod"])
    assert made["comment_modified_on"] == made["tags_modified_on"] == made["created_on"]


class TestPatch:
    def test_it_changes_what_is_sent_and_keeps_the_rest(self, api, records):
        made = api.post(records, {**WWW, "comment": "kept", "tags": ["a:b"]}).result

        changed = api.patch(f"{records}/{made['id']}", {"content": "192.0.2.2"}).result

        assert changed == {**made, "content": "192.0.2.2", "modified_on": changed["modified_on"]}
        assert changed["modified_on"] > made["modified_on"]
        assert api.get(f"{records}/{made['id']}").result == changed

    def test_null_keeps_but_clears_comment_and_tags(self, api, records):
        made = api.post(records, {**WWW, "comment": "gone", "tags": ["a:b"]}).result
        nothing = dict.fromkeys(("type", "name", "content", "data", "ttl", "proxied", "settings", "priority"))

        changed = api.patch(f"{records}/{made['id']}", {**nothing, "comment": None, "tags": None}).result

        assert (changed["content"], changed["ttl"]) == ("192.0.2.1", 3600)
        assert (changed["comment"], changed["tags"]) == (None, [])
        assert not {"comment_modified_on", "tags_modified_on"} & set(changed)

    def test_without_a_change_nothing_changes(self, api, records):
        made = api.post(records, {**WWW, "comment": "same"}).result
        api.changes.clear()

        for body in ({}, {"content": "192.0.2.1"}, {"name": "WWW", "ttl": 3600, "comment": "same"}):
            assert api.patch(f"{records}/{made['id']}", body).result == made
        assert api.changes == []

    def test_a_new_comment_has_a_new_time_and_dns_hears_nothing(self, api, www):
        api.changes.clear()

        changed = api.patch(www, {"comment": "new"}).result

        assert changed["comment_modified_on"] == changed["modified_on"] > changed["created_on"]
        assert api.changes == []
        kept = api.patch(www, {"ttl": 60}).result
        assert kept["comment_modified_on"] == changed["comment_modified_on"]

    def test_a_name_can_change(self, api, records, www):
        assert api.patch(www, {"name": "web"}).result["name"] == "web.example.com"
        assert api.get(f"{records}?name=www.example.com").result == []

    def test_a_priority_alone_can_change(self, api, records):
        mx = api.post(records, {"type": "MX", "name": "@", "content": "m.example.net", "priority": 5}).result
        data = {"priority": 5, "weight": 7, "port": 9, "target": "a.example.net"}
        srv = api.post(records, {"type": "SRV", "name": "_a._tcp", "data": data}).result

        assert api.patch(f"{records}/{mx['id']}", {"priority": 6}).result["priority"] == 6
        changed = api.patch(f"{records}/{srv['id']}", {"priority": 6}).result
        assert (changed["priority"], changed["data"]) == (6, {**changed["data"], **data, "priority": 6})

    def test_data_is_replaced_as_a_whole(self, api, records):
        caa = {"flags": 0, "tag": "issue", "value": "ca.example"}
        made = api.post(records, {"type": "CAA", "name": "@", "data": caa}).result

        answer = api.patch(f"{records}/{made['id']}", {"data": {"value": "other.example"}})

        assert answer.codes == [9101]
        assert api.get(f"{records}/{made['id']}").result == made

    def test_settings_are_merged_by_member(self, api, records):
        sent = {**WWW, "proxied": True, "settings": {"ipv4_only": True}}
        made = api.post(records, sent).result
        assert made["settings"] == {"ipv4_only": True}

        changed = api.patch(
            f"{records}/{made['id']}", {"settings": {"ipv4_only": False, "ipv6_only": True}}
        ).result

        assert changed["settings"] == {"ipv4_only": False, "ipv6_only": True}


class TestPut:
    def test_what_is_not_sent_returns_to_its_default(self, api, records):
        made = api.post(records, {**WWW, "comment": "x", "tags": ["a:b"], "proxied": True}).result

        replaced = api.put(
            f"{records}/{made['id']}", {"type": "A", "name": "www", "content": "192.0.2.2"}
        ).result

        assert (replaced["proxied"], replaced["ttl"]) == (False, 1)
        assert (replaced["comment"], replaced["tags"], replaced["settings"]) == (None, [], {})
        assert (replaced["id"], replaced["created_on"]) == (made["id"], made["created_on"])

    @pytest.mark.parametrize(("missing", "code"), {"type": 9101, "name": 9000, "content": 9101}.items())
    def test_type_name_and_content_are_needed(self, api, www, missing, code):
        body = {key: value for key, value in WWW.items() if key != missing}

        assert api.put(www, body).codes == [code]


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_a_type_cannot_change(api, www, method):
    body = {"type": "TXT", "name": "www", "content": "text"}

    answer = api.call(method, www, body)

    assert (answer.status, answer.codes) == (400, [9002])
    assert api.get(www).result["type"] == "A"


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize(
    ("change", "code"),
    [({"content": "nope"}, 9005), ({"ttl": 30}, 9021), ({"name": "a..b"}, 9000)],
    ids=str,
)
def test_a_refused_change_changes_nothing(api, www, method, change, code):
    before = api.get(www).result

    answer = api.call(method, www, {**WWW, **change})

    assert answer.codes == [code]
    assert api.get(www).result == before


def test_a_record_that_is_not_there_is_404(api, records, www):
    api.delete(www)

    for method, body in (("GET", None), ("PATCH", {}), ("PUT", WWW), ("DELETE", None)):
        answer = api.call(method, www, body)
        assert (answer.status, answer.codes) == (404, [81044])


def test_a_record_of_one_zone_is_not_found_in_another(api, www):
    other = api.post("/zones", {"name": "other.test"}).result["id"]
    path = f"/zones/{other}/dns_records/{www.rpartition('/')[2]}"

    for method, body in (("GET", None), ("PATCH", {"ttl": 60}), ("PUT", WWW), ("DELETE", None)):
        assert api.call(method, path, body).codes == [81044]
    assert api.get(www).result["ttl"] == 3600


def test_content_and_data_of_the_other_form_are_ignored(api, records):
    text = {"type": "TXT", "name": "a", "content": "x", "data": {"flags": 0}}
    caa = {"flags": 0, "tag": "issue", "value": "ca.example"}
    both = {"type": "CAA", "name": "a", "data": caa, "content": "nonsense", "priority": 0}

    assert "data" not in api.post(records, text).result
    assert api.post(records, both).result["data"] == caa
