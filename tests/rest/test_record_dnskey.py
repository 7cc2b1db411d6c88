"""DNSKEY records are for zones that several providers sign."""

import pytest

KEY = {"flags": 257, "protocol": 13, "algorithm": 13, "public_key": "AQIDBA=="}
BODY = {"type": "DNSKEY", "name": "@", "data": KEY}


@pytest.fixture
def multi_signer(api, zone_id):
    def switch(value):
        assert api.patch(f"/zones/{zone_id}/dnssec", {"dnssec_multi_signer": value}).status == 200

    return switch


def test_a_key_is_refused_until_several_providers_sign(api, records, multi_signer):
    assert api.post(records, BODY).causes == [9002]
    multi_signer(True)

    made = api.post(records, BODY).result

    assert (made["data"], made["content"]) == (KEY, "257 13 13 AQIDBA==")
    assert api.get(f"{records}?type=DNSKEY").result == [made]
    assert api.post(records, {**BODY, "data": None, "content": "256 3 13 AQID"}).status == 200


def test_keys_that_are_there_stay_and_leave_when_that_ends(api, records, multi_signer):
    multi_signer(True)
    path = f"{records}/{api.post(records, BODY).result['id']}"
    multi_signer(False)

    assert api.patch(path, {"content": "256 3 13 AQID"}).causes == [9002]
    assert api.patch(path, {"comment": "old key"}).result["comment"] == "old key"
    assert api.delete(path).status == 200
