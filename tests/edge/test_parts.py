"""Multipart bodies, asked by expressions."""

import pytest

from edgestead.edge.rules.fields import BODY_OCTETS_SEEN_MAX, view_of
from edgestead.edge.rules.parts import Parts
from edgestead.language import compile_filter
from tests.edge.made import ask

CONTENT_TYPE = b"multipart/form-data; boundary=x"
BODY = (
    b'--x\r\nContent-Disposition: form-data; name="user"\r\n\r\nroot\r\n'
    b'--x\r\nContent-Disposition: form-data; name="user"\r\n\r\n\r\n'
    b'--x\r\nContent-Disposition: form-data; name="doc"; filename="a.php"\r\n'
    b"Content-Type: text/x-php\r\nContent-Transfer-Encoding: binary\r\n\r\n<?php\r\n1\r\n"
    b"--x--\r\n"
)
M = "http.request.body.multipart"
HOLD = [
    f'{M}["user"][0] eq "root" and {M}["user"][1] eq "" and {M}["doc"][0] contains "<?php"',
    f'any({M}.values[*] eq "root") and {M}.values[2] eq "<?php\\x0d\\x0a1"',
    f'{M}.names[0][0] eq "user" and {M}.names[2][0] eq "doc"',
    f'any({M}.filenames[*][0] eq "a.php") and {M}.filenames[2][0] eq "a.php"',
    f'{M}.content_types[2][0] eq "text/x-php"',
    f'{M}.content_dispositions[0][0] eq "form-data; name=\\"user\\""',
    f'{M}.content_transfer_encodings[2][0] eq "binary"',
]
NOT = [
    f'{M}.filenames[0][0] eq ""',
    f'{M}.content_types[0][0] eq ""',
    f'{M}["none"][0] eq ""',
    f'any({M}.filenames[*][0] eq "b.php")',
]


def asked(text, body=BODY, content_type=CONTENT_TYPE, complete=True):
    exchange = ask("/", method=b"POST", headers=[(b"content-type", content_type)], body=body)
    exchange.body_complete = complete
    return compile_filter(text, "http_request_firewall_custom")(view_of(exchange))


@pytest.mark.parametrize("text", HOLD)
def test_a_field_has_the_parts_in_their_order(text):
    assert asked(text)


@pytest.mark.parametrize("text", NOT)
def test_what_a_part_lacks_is_missing(text):
    assert not asked(text)


@pytest.mark.parametrize("content_type", [b"text/plain", b"application/x-www-form-urlencoded", b""])
def test_other_bodies_have_no_parts(content_type):
    assert not any(asked(text, content_type=content_type) for text in HOLD)


@pytest.mark.parametrize("end", range(len(BODY)))
def test_of_a_body_that_is_cut_what_is_here_is_seen(end):
    whole, cut = Parts(CONTENT_TYPE, BODY, True), Parts(CONTENT_TYPE, BODY[:end], False)
    assert whole.names[: len(cut.names)] == cut.names
    for seen, full in zip(cut.values, whole.values, strict=False):
        assert full.startswith(seen) or seen.startswith(full)  # of a cut file the boundary may be seen, too
    if BODY[:end].endswith(b"<?php"):
        assert cut.values[2] == b"<?php"


def test_of_a_body_beyond_the_limit_the_parts_that_begin_before_it_are_seen():
    filler = b'--x\r\nContent-Disposition: form-data; name="big"\r\n\r\n' + b"y" * BODY_OCTETS_SEEN_MAX
    first, last = BODY[: BODY.index(b"--x\r\n", 1)], BODY[BODY.rindex(b"--x\r\n") :]
    body = first + filler + b"\r\n" + last
    for complete in (True, False):
        assert asked(f'{M}["user"][0] eq "root" and {M}["big"][0] contains "yyyy"', body, complete=complete)
        assert asked("http.request.body.truncated", body, complete=complete)
        assert not asked(f'any({M}.filenames[*][0] eq "a.php")', body, complete=complete)
    assert asked(f'any({M}.filenames[*][0] eq "a.php")', first + last)


def test_a_field_that_is_cut_shows_what_is_here():
    cut = Parts(CONTENT_TYPE, BODY[: BODY.index(b"ot\r\n")], False)
    assert (cut.names, cut.values) == ([[b"user"]], [b"ro"])


DAMAGED = [
    (CONTENT_TYPE, BODY.replace(b"--x--", b"--x-")),
    (CONTENT_TYPE, BODY[:60] + b"--x\r\nno header at all\r\n\r\n"),
    (b"multipart/form-data", BODY),
    (b"multipart/form-data; boundary=", BODY),
    (CONTENT_TYPE, b""),
    (CONTENT_TYPE, b"--x"),
]


@pytest.mark.parametrize(("content_type", "body"), DAMAGED)
def test_a_damaged_body_is_no_fault_and_shows_what_came_before(content_type, body):
    parts = Parts(content_type, body, True)
    assert len(parts.names) == len(parts.values) == len(parts.filenames)
    assert parts.values[:1] in ([], [b"root"])


def test_parts_are_not_without_number():
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    assert len(Parts(CONTENT_TYPE, part * 2_000, False).names) == 256
