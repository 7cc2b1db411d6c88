"""TSIG keys as resources: made, shown, changed, ended; and what DNS processes are told."""

import base64

import pytest

from edgestead.model import sealing, tsig
from edgestead.model.names import wire_from_text
from edgestead.tables import tsig_keys
from edgestead.usecases import limits
from tests.rest.tokens import ACCOUNT, RESTRICTED, policy, put_token
from tests.support.api import CREDENTIALS

KEYS = f"/accounts/{CREDENTIALS.account_id}/secondary_dns/tsigs"
SECRET = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


def fed(api):
    """The keys that the feed has told of, opened."""
    found = {}
    for change in api.changes:
        if change.kind == tsig.KIND_KEY:
            served = None if change.doc is None else tsig.decode_key(change.doc)
            found[change.key] = served and (served, opened(api, served))
    return found


def opened(api, served):
    return sealing.unseal(api.platform.seal.derived(tsig.PURPOSE), served.sealed, served.name)


def test_a_key_is_made_shown_changed_and_deleted(api):
    made = api.post(KEYS, {"name": "XFR.Example.com.", "algo": "hmac-sha512.", "secret": SECRET}).result

    assert (made["name"], made["algo"]) == ("xfr.example.com.", "hmac-sha512.")
    assert made["secret"] == SECRET
    assert api.get(KEYS).result == [made]
    assert api.get(f"{KEYS}/{made['id']}").result == made
    ((served, secret),) = fed(api).values()
    assert (served.name, served.algorithm, served.transfer) == (
        wire_from_text("xfr.example.com"),
        "hmac-sha512",
        True,
    )
    assert secret == base64.b64decode(SECRET)

    changed = api.put(f"{KEYS}/{made['id']}", {"name": "other.example", "transfer": False}).result

    assert changed["secret"] == SECRET
    assert changed["algo"] == "hmac-sha512."
    ((served, secret),) = fed(api).values()
    assert (served.name, served.transfer) == (wire_from_text("other.example"), False)
    assert secret == base64.b64decode(SECRET)
    assert api.delete(f"{KEYS}/{made['id']}").result == {"id": made["id"]}
    assert fed(api) == {made["id"]: None}
    assert api.get(KEYS).result == []
    assert api.get(f"{KEYS}/{made['id']}").status == 404


def test_a_secret_is_made_when_there_is_none(api):
    first, second = (api.post(KEYS, {"name": name}).result for name in ("a.example", "b.example"))

    assert first["algo"] == "hmac-sha256."
    assert len(base64.b64decode(first["secret"])) == 32
    assert first["secret"] != second["secret"]


def test_the_secret_is_in_no_file_and_in_no_log(api, tmp_path):
    made = api.post(KEYS, {"name": "a.example"}).result
    secret = base64.b64decode(made["secret"])
    api.put(f"{KEYS}/{made['id']}", {"name": "c.example"})
    api.delete(f"{KEYS}/{made['id']}")
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    written += b"".join(api.lines)

    assert secret not in written
    assert made["secret"].encode() not in written
    entries = api.get(f"/accounts/{CREDENTIALS.account_id}/audit_logs").result
    assert {entry["action"]["type"] for entry in entries} == {"create", "update", "delete"}
    assert made["secret"] not in str(entries)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "a..b"}, "/name"),
        ({"name": "x" * 64}, "/name"),
        ({"name": "a.example", "algo": "hmac-md5.sig-alg.reg.int."}, "/algo"),
        ({"name": "a.example", "secret": "!!!"}, "/secret"),
        ({"name": "a.example", "secret": "YWJj"}, "/secret"),
        ({"name": "a.example", "secret": base64.b64encode(b"x" * 513).decode()}, "/secret"),
        ({"name": "a.example", "secret": "A" * 100_000}, "/secret"),
    ],
)
def test_what_is_no_key_is_refused(api, body, pointer):
    answer = api.post(KEYS, body)

    assert (answer.status, answer.causes) == (400, [1001])
    if "source" in answer.json["errors"][0]:
        assert answer.json["errors"][0]["source"]["pointer"] == pointer
    assert api.get(KEYS).result == []


def test_a_name_belongs_to_one_key(api):
    api.post(KEYS, {"name": "a.example"})
    other = api.post(KEYS, {"name": "b.example"}).result

    assert api.post(KEYS, {"name": "A.Example."}).status == 400
    assert api.put(f"{KEYS}/{other['id']}", {"name": "a.example"}).status == 400
    assert api.put(f"{KEYS}/{other['id']}", {"name": "b.example"}).status == 200


def test_an_account_has_so_many_and_no_more(api, monkeypatch):
    monkeypatch.setattr(limits, "TSIG_KEYS_MAX", 2)
    for name in ("a.example", "b.example"):
        assert api.post(KEYS, {"name": name}).status == 200

    assert api.post(KEYS, {"name": "c.example"}).status == 400


def test_a_key_that_does_not_open_is_listed_and_made_anew(api):
    lost, other = (api.post(KEYS, {"name": name}).result for name in ("a.example", "b.example"))

    def restored(tx):
        row = tsig_keys.one(tx, CREDENTIALS.account_id, lost["id"])
        tsig_keys.update(tx, row._replace(sealed=bytes(len(row.sealed))))

    api.store.write(restored).result(60)

    shown = lost | {"secret": "", "sealed": True}
    assert api.get(KEYS).result == [shown, other]
    assert api.get(f"{KEYS}/{lost['id']}").result == shown
    assert api.put(f"{KEYS}/{lost['id']}", {"transfer": False}).status == 503
    anew = api.put(f"{KEYS}/{lost['id']}", {"secret": SECRET}).result
    assert (anew["secret"], anew["sealed"]) == (SECRET, False)
    api.store.write(restored).result(60)
    assert api.delete(f"{KEYS}/{lost['id']}").status == 200
    assert api.post(KEYS, {"name": "a.example"}).result["secret"]


@pytest.mark.parametrize(("permission", "status"), [("Read", 403), ("Write", 200)])
def test_who_may_only_read_sees_no_secret(api, permission, status):
    api.post(KEYS, {"name": "a.example"})
    put_token(api, policy(f"Account DNS Settings {permission}", resources=ACCOUNT))

    assert api.get(KEYS, auth=RESTRICTED).status == status


def test_a_key_changes_what_its_maker_may(api):
    own = api.post(KEYS, {"name": "own.example", "update": {}}).result
    put_token(api, policy("Account DNS Settings Write", resources=ACCOUNT))
    made = api.post(KEYS, {"name": "a.example", "update": {"names": ["*.Example.com."]}}, auth=RESTRICTED)

    assert [one["secret"] != "" for one in api.get(KEYS, auth=RESTRICTED).result] == [True, False]
    assert api.get(f"{KEYS}/{own['id']}", auth=RESTRICTED).result["secret"] == ""
    assert api.put(f"{KEYS}/{own['id']}", {"secret": SECRET}, auth=RESTRICTED).status == 400
    assert made.result["update"]["names"] == ["*.example.com"]
    assert made.result["update"]["token_id"] != own["update"]["token_id"]
    ((_, first), (_, second)) = [(id_, served) for id_, (served, _) in fed(api).items()]
    assert (first.update, second.update) == (True, True)
    key = f"{KEYS}/{made.result['id']}"
    assert api.put(key, {"update": None}, auth=RESTRICTED).result["update"] is None
    for body in ({"token_id": own["update"]["token_id"]}, {"token_id": ""}, {"token_id": "0" * 32}):
        refused = api.put(key, {"update": body}, auth=RESTRICTED)
        assert (refused.status, refused.causes) == (400, [1001])
    other = {"token_id": made.result["update"]["token_id"]}
    assert api.put(key, {"update": other}).result["update"]["token_id"] == other["token_id"]
    assert api.put(key, {"transfer": True}).result["update"]["token_id"] == other["token_id"]


@pytest.mark.parametrize(
    "update",
    [
        {"names": ["a..b"]},
        {"names": ["*."]},
        {"names": ["x"] * 101},
        {"types": ["NONSENSE"]},
        {"token_id": "0" * 32},
    ],
)
def test_what_a_key_may_change_is_checked(api, update):
    assert api.post(KEYS, {"name": "a.example", "update": update}).status == 400


def test_who_owns_a_zone_is_told(api, zone_id):
    owners = [change for change in api.changes if change.kind == tsig.KIND_OWNER]

    ((scope, owner),) = [(change.scope, tsig.decode_owner(change.doc)) for change in owners]
    assert scope == zone_id
    assert (owner.apex, owner.account_id) == (wire_from_text("example.com"), CREDENTIALS.account_id)
