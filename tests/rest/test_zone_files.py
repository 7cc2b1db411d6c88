"""Zone files: imported as a whole or not at all, exported so that an import makes the same records."""

import pytest

from edgestead.changes import NEWEST
from edgestead.model.call import Actor, Call, Profile
from edgestead.model.refusals import Unavailable
from edgestead.rest.routes import zone_files
from edgestead.usecases.record import records as cases
from edgestead.usecases.record.draft import RecordBody
from edgestead.usecases.zone import importing
from tests.rest.conftest import WWW
from tests.support.api import CREDENTIALS, FIRST_US

FILE = """\
$ORIGIN example.com.
$TTL 3600
@       IN SOA  ns1.old.test. host.old.test. ( 1 7200 3600 1209600 3600 )
        IN NS   ns1.old.test.
        IN MX   10 mail
www     60      A 192.0.2.1     ; for the shop cf_tags=owner:web,cf-proxied:true
                AAAA 2001:db8:1::1
_x._tcp         SRV 1 2 3 mail
t               TXT ( "one"
                      "two" )
sub             DS 1 13 2 {digest}
sub             NS ns.sub
$GENERATE 1-3   host-$ A 192.0.2.$
""".format(digest="ab" * 32)

# A file, and what its refusal says: (line, code of the cause), for each error.
REFUSED = {
    "one bad record": ("a A 192.0.2.1\nb A nope", [(2, 9005)]),
    "each bad record is named": ("a A x\nb A 192.0.2.1\nc 30 A 192.0.2.1", [(1, 9005), (3, 9021)]),
    "other zone": ("a.other.test. A 192.0.2.1", [(1, 9000)]),
    "a name below another zone's": ("aexample.com. A 192.0.2.1", [(1, 9000)]),
    "conflict in the file": ("a A 192.0.2.1\na CNAME b", [(2, 81053)]),
    "conflict with the zone": ("www CNAME b", [(1, 81053)]),
    "there with another TTL": ("www 60 A 192.0.2.1", [(1, 81057)]),
    "twice with another comment": ("a A 192.0.2.1\na A 192.0.2.1 ; x", [(2, 81057)]),
    "an asterisk delegated": ("*.a NS ns.example.net.", [(1, 9000)]),
    "edge address": ("a A 203.0.113.1", [(1, 9003)]),
    "DS without NS": ("a DS 1 13 2 " + "ab" * 32, [(1, 9007)]),
    "SOA elsewhere": ("a SOA b c 1 2 3 4 5", [(1, 9000)]),
    "proxied MX": ("a MX 1 b ; cf_tags=cf-proxied:true", [(1, 9004)]),
    "long comment": ("a A 192.0.2.1 ; " + "x" * 501, [(1, 9301)]),
    "bad tags": ('a A 192.0.2.1 ; cf_tags=a:"', [(1, 9301)]),
    "many tags": ("a A 192.0.2.1 ; cf_tags=" + ",".join("abcdefghijklmnopqrstuvw"), [(1, 9300)]),
    "twenty are enough": ("a A x\n" * 30, [(line, 9005) for line in range(1, 21)]),
}
UNREADABLE = {
    "$INCLUDE": b"a A 192.0.2.1\n$INCLUDE /etc/passwd",
    "open quote": b'a A 192.0.2.1\nb TXT "',
    "not UTF-8": b"a A 192.0.2.1\nb TXT \xff",
}
# Files and (line, code) of all that is said of them: what cannot be read and what a zone does not take.
BAD_IN_MANY_WAYS = {
    "contents, types, directives": (
        "a A 999.1.1.1\nb FOO x\n$INCLUDE /etc/passwd\nd BAR y\ne A 192.0.2.1\nf TYPE65534 \\# 0\n"
        "$TTL soon\n$NONSENSE\ng A x",
        [(1, 9402), (2, 9401), (3, 9401), (4, 9401), (6, 9401), (7, 9401), (8, 9401), (9, 9402)],
    ),
    "an open quote ends with its line": (
        'a TXT "x\nb A x\nc TXT x\\\nd A x',
        [(1, 9401), (2, 9402), (3, 9401), (4, 9402)],
    ),
    "a parenthesis too many": ("a A 192.0.2.1 )\nb A x", [(1, 9401), (2, 9402)]),
    "an open parenthesis ends the file": ("a A x\nb TXT ( x\nc A x\nd A x", [(1, 9402), (2, 9401)]),
    "two parentheses, too": ("a A x\nb TXT ( x (\nc A x\nd A x )", [(1, 9402), (2, 9401)]),
    "an unknown origin ends the file": ("a A x\n$ORIGIN a..b\nc A x", [(1, 9402), (2, 9401)]),
    "what hangs on a bad owner is read": (
        "www A 192.0.2.1\na..b TXT x\n    CNAME www\n    FOO\nc A x",
        [(2, 9401), (4, 9401), (5, 9402)],
    ),
    "not UTF-8": (b"a A x\nb TXT \xff ( x\n \xff )\nc A x\n", [(1, 9402), (2, 9401), (3, 9401), (4, 9402)]),
    "one thing of a line": ("$GENERATE 1-9 a$ A x\nb A x", [(1, 9402), (2, 9402)]),
    "twenty lines": ("a FOO\nb A x\n" * 30, [(line, 9402 - line % 2) for line in range(1, 21)]),
}
NO_FORM = {
    "JSON": ({"content-type": "application/json"}, b"{}", 9207),
    "text": ({"content-type": "text/plain"}, b"a A 192.0.2.1", 9207),
    "no boundary": ({"content-type": "multipart/form-data"}, b"x", 9207),
    "cut short": ({"content-type": "multipart/form-data; boundary=b"}, b"--b\r\n", 9207),
}


def form(**parts):
    """A form's body and head."""
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        % (name.encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in parts.items()
    )
    return body + b"--b--\r\n", {"content-type": "multipart/form-data; boundary=b"}


@pytest.fixture
def load(api, records):
    """Import a file; gives the answer."""

    def import_(file, **parts):
        body, headers = form(file=file, **parts)
        return api.post(f"{records}/import", body, headers=headers)

    return import_


@pytest.fixture
def stored(api, records):
    """The zone's records: what somebody may have chosen of them."""

    def read():
        chosen = (
            "name",
            "type",
            "content",
            "priority",
            "data",
            "ttl",
            "proxied",
            "settings",
            "comment",
            "tags",
        )
        return sorted(
            ({key: record.get(key) for key in chosen} for record in api.get(records).result), key=repr
        )

    return read


class TestImport:
    def test_a_file_becomes_records_in_one_change(self, api, zone_id, load, stored):
        answer = load(FILE)

        assert answer.result == {"recs_added": 10, "total_records_parsed": 10}
        found = {(one["name"].removesuffix(".example.com"), one["type"]): one for one in stored()}
        assert found["example.com", "MX"]["content"] == "mail.example.com"
        assert found["example.com", "MX"]["ttl"] == 3600
        www = found["www", "A"]
        assert (www["proxied"], www["ttl"], www["comment"], www["tags"]) == (
            True,
            1,
            "for the shop",
            ["owner:web"],
        )
        assert found["t", "TXT"]["content"] == '"one" "two"'
        assert found["_x._tcp", "SRV"]["content"] == "2 3 mail.example.com"
        assert ("sub", "DS") in found
        assert ("host-3", "A") in found
        (change,) = api.get(f"/zones/{zone_id}/history").result
        assert (change["origin"], change["changes_count"]) == ("import", 10)

    def test_the_zones_own_soa_and_ns_are_skipped(self, load, stored):
        load(FILE)

        assert not [one for one in stored() if one["type"] == "SOA" or one["content"] == "ns1.old.test"]

    def test_a_zone_of_several_providers_takes_their_apex_ns(self, api, zone_id, records, load, stored):
        api.patch(f"/zones/{zone_id}/dns_settings", {"multi_provider": True})

        load("@ NS ns1.other.test.\n@ NS ns1.edge.internal.")

        assert [one["content"] for one in stored()] == ["ns1.other.test"]
        lines = api.get(f"{records}/export").body.decode().splitlines()
        assert [line.split("\t")[4] for line in lines if "\tNS\t" in line] == [
            "ns1.edge.internal.",
            "ns2.edge.internal.",
            "ns1.other.test.",
        ]

    @pytest.mark.parametrize(
        ("file", "line"),
        [
            ("a CNAME b\nb CNAME c\nc CNAME a\n", 3),
            ("c CNAME there\n", 1),
            ("b CNAME there\nx A 192.0.2.1\nc CNAME b", 3),
        ],
    )
    def test_the_line_that_closes_a_circle_of_cnames_is_named(self, api, records, load, stored, file, line):
        api.post(records, {"type": "CNAME", "name": "there", "content": "c.example.com"})

        answer = load(file)

        assert (answer.status, answer.codes) == (400, [9402])
        assert answer.json["errors"][0]["message"].startswith(f"Line {line}")
        assert [one["name"] for one in stored()] == ["there.example.com"]

    def test_the_form_says_what_is_proxied_and_a_line_knows_better(self, load, stored):
        load(
            "a A 192.0.2.1\nb CNAME c.test.\nm MX 1 a\nd A 192.0.2.1 ; cf_tags=cf-proxied:false",
            proxied="true",
        )

        assert [
            (one["name"][0], one["proxied"]) for one in sorted(stored(), key=lambda one: one["name"])
        ] == [
            ("a", True),
            ("b", True),
            ("d", False),
            ("m", False),
        ]

    def test_what_is_there_already_is_not_added_again(self, api, zone_id, load):
        load(FILE)

        assert load(FILE).result == {"recs_added": 0, "total_records_parsed": 10}
        assert load("a A 192.0.2.1\na A 192.0.2.1").result == {"recs_added": 1, "total_records_parsed": 2}
        assert len(api.get(f"/zones/{zone_id}/history").result) == 2

    def test_without_a_ttl_it_is_automatic(self, load, stored):
        load("a A 192.0.2.1")

        assert [one["ttl"] for one in stored()] == [1]

    @pytest.mark.parametrize(("file", "errors"), REFUSED.values(), ids=REFUSED)
    def test_a_bad_line_is_named_and_nothing_is_added(self, api, records, load, stored, file, errors):
        api.post(records, WWW)
        before = stored()
        api.changes.clear()

        answer = load(file)

        assert answer.status == 400
        assert set(answer.codes) == {9402}
        assert [
            (int(error["message"].split()[1].strip(",")), error["error_chain"][0]["code"])
            for error in answer.json["errors"]
        ] == errors
        assert stored() == before
        assert api.changes == []

    @pytest.mark.parametrize("file", UNREADABLE.values(), ids=UNREADABLE)
    def test_a_file_that_cannot_be_read_adds_nothing(self, load, stored, file):
        answer = load(file)

        assert (answer.status, answer.codes) == (400, [9401])
        assert answer.json["errors"][0]["message"].startswith("Line 2: ")
        assert stored() == []

    @pytest.mark.parametrize(("file", "errors"), BAD_IN_MANY_WAYS.values(), ids=BAD_IN_MANY_WAYS)
    def test_every_bad_line_is_named_whatever_is_wrong_with_it(self, load, stored, file, errors):
        answer = load(file)

        assert answer.status == 400
        assert [
            (int(error["message"].split()[1].strip(",:")), error["code"]) for error in answer.json["errors"]
        ] == errors
        assert stored() == []

    @pytest.mark.parametrize(("headers", "body", "code"), NO_FORM.values(), ids=NO_FORM)
    def test_only_a_form_is_taken(self, api, records, headers, body, code):
        answer = api.post(f"{records}/import", body, headers=headers)

        assert (answer.status, answer.codes) == (400, [code])

    def test_a_form_without_a_file_or_with_another_word_is_refused(self, api, records, load):
        body, headers = form(proxied="true")

        assert api.post(f"{records}/import", body, headers=headers).codes == [1001]
        assert load("a A 192.0.2.1", proxied="yes").codes == [9207]

    def test_there_are_limits_of_octets_and_records(self, load, stored, monkeypatch):
        monkeypatch.setattr(zone_files, "ZONE_FILE_BYTES_MAX", 100)
        monkeypatch.setattr(importing, "IMPORTED_RECORDS_MAX", 3)

        assert load(";" * 101).codes == [9403]
        assert load("$GENERATE 1-4 a$ A 192.0.2.$").codes == [9403]
        assert load(b";" * 200_000).status == 413
        assert stored() == []
        assert load("$GENERATE 1-3 a$ A 192.0.2.$").result["recs_added"] == 3

    def test_a_third_large_file_of_one_caller_waits_outside(self, api, load):
        actor = api.access.by_token(CREDENTIALS.api_token.encode()).actor
        large = ";\n" * 150_000 + "a A 192.0.2.1"

        with api.kv.body_slot(actor, None), api.kv.body_slot(actor, None):
            assert load(large).codes == [10429]
            assert load("b A 192.0.2.1").status == 200
        assert load(large).status == 200

    def test_a_large_file_is_written_in_portions_and_stays_one_change(self, api, zone_id, records, load):
        file = "".join(f"h{number} A 192.0.2.1\n" for number in range(100))

        assert load(file).result["recs_added"] == 100

        (change,) = api.get(f"/zones/{zone_id}/history").result
        assert change["changes_count"] == 100
        pages = [
            api.get(f"/zones/{zone_id}/history/1/diff?per_page=60&page={page}").result for page in (1, 2, 3)
        ]
        assert [len(page) for page in pages] == [60, 40, 0]
        assert len({one["name"] for page in pages for one in page}) == 100
        api.post(f"/zones/{zone_id}/history/1/undo", {})
        assert api.get(records).result == []

    def test_what_somebody_wrote_meanwhile_takes_the_import_back(
        self, api, zone_id, records, load, monkeypatch
    ):
        really_add, portions = importing.add, []

        def add(call, tx, platform, zone, drafts, sequence):
            portions.append(len(drafts))
            if len(portions) == 2:
                really_add(call, tx, platform, zone, [drafts[0]._replace(ttl=60)], None)
            return really_add(call, tx, platform, zone, drafts, sequence)

        monkeypatch.setattr(importing, "add", add)

        answer = load("".join(f"h{number} A 192.0.2.1\n" for number in range(100)))

        assert (answer.status, answer.codes) == (400, [81057])
        assert len(portions) == 2
        assert api.get(records).result == []
        undone, imported = api.get(f"/zones/{zone_id}/history").result
        assert (imported["origin"], undone["origin"], undone["reverts"]) == ("import", "undo", 1)

    @pytest.fixture
    def cut(self, api, zone_id, records, load, monkeypatch):
        """Import a file of two portions; before the second one somebody deletes a record of the first one,
        changes another one, and writes what that portion meets.
        """
        really = importing.Plan.portions
        call = Call(
            actor=Actor(kind="account", id=""),
            as_of=NEWEST,
            profile=Profile.SPEC,
            now_us=FIRST_US,
            request_id="",
        )

        def somebody(tx):
            ids = dict(tx.rows("select name, id from records where zone_id = ?", (zone_id,)))
            cases.delete(call, tx, api.platform, zone_id, ids["a01.example.com"])
            body = RecordBody(comment="mine")
            cases.patch(call, tx, api.platform, zone_id, ids["a02.example.com"], body)
            new = RecordBody(type="A", name="a19", content="192.0.2.1", ttl=60)
            cases.create(call, tx, api.platform, zone_id, new)

        def portions(plan):
            first, second = really(plan)
            yield first
            api.store.write(somebody).result(60)
            yield second

        monkeypatch.setattr(importing.Plan, "portions", portions)
        return lambda: load("".join(f"a{number:02} A 192.0.2.1\n" for number in range(20)))

    def test_what_somebody_changed_of_an_import_that_is_taken_back_stays_and_is_named(
        self, api, zone_id, records, cut
    ):
        answer = cut()

        assert (answer.status, answer.codes) == (400, [81057])
        (remark,) = answer.json["messages"]
        assert remark["message"].endswith("not taken back: A a02.example.com.")
        assert [one["name"] for one in api.get(records).result] == ["a02.example.com", "a19.example.com"]
        undone = api.get(f"/zones/{zone_id}/history").result[0]
        assert (undone["origin"], undone["reverts"]) == ("undo", 1)

    def test_an_import_that_cannot_be_taken_back_says_why_it_was_refused_and_what_stays(
        self, api, records, cut, monkeypatch
    ):
        def refuse(*_):
            raise Unavailable

        monkeypatch.setattr(importing, "take_back", refuse)

        answer = cut()

        assert (answer.status, answer.codes) == (400, [81057])
        (remark,) = answer.json["messages"]
        assert remark["message"].startswith("Change 1 of the zone has a part of the file, and stays:")
        assert len(api.get(records).result) == 16

    def test_what_one_import_leaves_is_said_to_its_client_alone(self, cut, monkeypatch):
        """A group of writes that cannot be committed gives one refusal to everybody in it."""
        really, shared = importing.add, Unavailable()

        def add(*arguments):
            if arguments[-1] is not None:
                raise shared
            return really(*arguments)

        monkeypatch.setattr(importing, "add", add)

        answer = cut()

        assert (answer.status, len(answer.json["messages"])) == (503, 1)
        assert shared.remarks == ()

    def test_an_unknown_zone_is_not_found(self, api):
        body, headers = form(file="a A 192.0.2.1")
        unknown = f"/zones/{'f' * 32}/dns_records"

        assert api.post(f"{unknown}/import", body, headers=headers).status == 404
        assert api.get(f"{unknown}/export").status == 404


class TestExport:
    def test_it_is_a_zone_file_with_soa_and_ns(self, api, records, load):
        load(FILE)

        answer = api.get(f"{records}/export")

        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        lines = answer.body.decode().splitlines()
        assert lines[1] == "$ORIGIN example.com."
        assert lines[2].startswith(
            "example.com.\t3600\tIN\tSOA\tns2.edge.internal. hostmaster.edge.internal. "
        )
        assert "example.com.\t86400\tIN\tNS\tns1.edge.internal." in lines
        assert (
            "www.example.com.\t1\tIN\tA\t192.0.2.1 ; for the shop edge_tags=owner:web,edge-proxied:true"
            in lines
        )
        assert "example.com.\t3600\tIN\tMX\t10 mail.example.com." in lines

    def test_imported_again_it_makes_the_same_records(self, api, zone_id, records, load, stored):
        load(FILE)
        for body in (
            {
                "type": "TXT",
                "name": "odd",
                "content": r'"a\"b;c\\" "über\007"',
                "comment": 'see "x"; cf_tags=y',
            },
            {"type": "CNAME", "name": "c", "content": "x.test", "settings": {"flatten_cname": True}},
            {**WWW, "name": "*", "proxied": True, "settings": {"ipv4_only": True}, "tags": ["a:b, c=d", "e"]},
            {"type": "CAA", "name": "@", "data": {"flags": 0, "tag": "issue", "value": 'ca.example; a="b"'}},
        ):
            assert api.post(records, body).status == 200
        before, text = stored(), api.get(f"{records}/export").body
        api.post(f"/zones/{zone_id}/history/0/restore", {})
        assert stored() == []

        answer = load(text)

        assert answer.result["recs_added"] == len(before)
        assert stored() == before

    def test_a_zone_of_many_rows_is_exported_once_each(self, api, records, load):
        load("".join(f"h{number} A 192.0.2.1\nh{number} A 192.0.2.2\n" for number in range(400)))

        lines = api.get(f"{records}/export").body.decode().splitlines()

        hosts = [line for line in lines if line.startswith("h")]
        assert len(hosts) == len(set(hosts)) == 800


class TestOthers:
    def test_usage_counts_the_records_of_a_zone_and_of_an_account(self, api, records, www):
        account = api.get("/accounts").result[0]["id"]
        other = api.post("/zones", {"name": "example.net"}).result["id"]
        api.post(f"/zones/{other}/dns_records", {**WWW, "name": "@"})

        assert api.get(f"{records}/usage").result == {"record_quota": 1_000_000, "record_usage": 1}
        assert api.get(f"/accounts/{account}/dns_records/usage").result == {
            "record_quota": None,
            "record_usage": 2,
        }
        assert api.get(f"/accounts/{'f' * 32}/dns_records/usage").status == 403

    def test_a_scan_finds_nothing(self, api, records):
        assert api.post(f"{records}/scan", {}).result == {"recs_added": 0, "total_records_parsed": 0}
        assert api.post(f"{records}/scan/trigger", {}).result is None
        assert api.get(f"{records}/scan/review").result == []
        reviewed = api.post(f"{records}/scan/review", {"accepts": [], "rejects": None})
        assert reviewed.result == {"accepts": [], "rejects": []}

    def test_what_a_scan_did_not_find_cannot_be_reviewed(self, api, records):
        answer = api.post(f"{records}/scan/review", {"rejects": [{"id": "f" * 32}]})

        assert (answer.status, answer.codes) == (404, [81044])
        assert api.get(records).result == []


@pytest.mark.parametrize("profile", [Profile.CLIENTS])
def test_the_profile_clients_writes_the_vendors_words(api, records, load, profile):
    load("www A 192.0.2.1 ; a edge_tags=edge-proxied:true")

    assert "; a cf_tags=cf-proxied:true" in api.get(f"{records}/export").body.decode()


def test_a_dry_run_says_what_would_be_added_and_adds_nothing(api, records, load):
    text = 'a 300 IN A 192.0.2.1\nb 300 IN TXT "x"\n'
    load("a 300 IN A 192.0.2.1\n")
    body, headers = form(file=text)

    found = api.post(f"{records}/import?dry_run=true", body, headers=headers).result

    assert (found["recs_added"], found["total_records_parsed"]) == (1, 2)
    (coming,) = found["records"]
    assert (coming["name"], coming["type"], coming["ttl"]) == ("b.example.com", "TXT", 300)
    assert len(api.get(records).result) == 1
    assert "records" not in load(text)
