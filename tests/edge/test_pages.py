"""Each page of an origin's fault, in both of its forms."""

import json

import pytest

from edgestead.edge.exchanges import faults
from edgestead.edge.exchanges.answers import words
from edgestead.edge.exchanges.faults import Fault
from edgestead.edge.exchanges.pages import page

FAULTS = [fault for fault in vars(faults).values() if isinstance(fault, Fault)]
HTML, JSON = b"text/html; charset=utf-8", b"application/json"
FORMS = [
    (None, HTML),
    (b"*/*", HTML),
    (b"text/html,application/json", HTML),
    (b"application/json", JSON),
    (b"application/problem+json, */*", JSON),
]


def test_there_is_a_fault_for_each_status():
    assert {fault.status for fault in FAULTS} == {520, 521, 522, 523, 524, 525, 526, 530}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.status}")
@pytest.mark.parametrize(("accept", "form"), FORMS)
def test_a_page_says_what_happened_in_the_form_that_is_wanted(fault, accept, form):
    answer = page(
        fault.status, fault.reason, ray=b"0123456789abcdef", host=b"www.edge.example", accept=accept
    )
    assert (answer.status, dict(answer.headers)[b"content-type"]) == (fault.status, form)
    assert dict(answer.headers)[b"cache-control"] == b"no-store"
    assert words(fault.status)
    if form == JSON:
        told = json.loads(answer.body)
        assert told["errors"] == [{"code": fault.status, "message": f"{words(fault.status)}: {fault.reason}"}]
        assert (told["success"], told["result"], told["ray_id"]) == (False, None, "0123456789abcdef")
    else:
        text = answer.body.decode()
        assert f"<h1>{fault.status} {words(fault.status)}</h1>" in text
        assert "www.edge.example" in text
        assert "Ray ID: 0123456789abcdef" in text
        assert "@media(prefers-color-scheme:dark)" in text


def test_a_page_escapes_what_its_client_sent():
    assert b"<b>" not in page(530, "No.", ray=b"0", host=b"<b>.example").body
