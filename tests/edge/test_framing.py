"""No form of a request, in HTTP/1.1 or HTTP/2, is read in two ways: what the edge takes for one request, its
origin does too.

Every request that the edge sends carries a ray of its own. So an origin that reads a request without one, or
two with the same, has found a request where the edge saw none.
"""

import random
import re
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from edgestead.cli.server.authority import Authority
from tests.edge import http2_forms
from tests.edge.forms import FORMS, written
from tests.edge.http2_client import Http2Socket, fields
from tests.edge.http2_forms import CUT_OFF, PASSES, UPGRADE
from tests.edge.origins import RealOrigin
from tests.edge.talk import connected, read_answer
from tests.edge.tls import client_context, put, secured, tls_site

KINDS = ("nginx", "apache", "caddy", "python", "nginx-h2c")
RAY = re.compile(r"[0-9a-f]{16}")


@pytest.fixture(scope="module")
def authority():
    return Authority.new(datetime.now(UTC))


@pytest.fixture(scope="module")
def site(tmp_path_factory, authority):
    tls_dir = tmp_path_factory.mktemp("tls")
    put(authority, tls_dir, "_.h2.example", "*.h2.example")
    with tls_site(tmp_path_factory.mktemp("site"), authority, tls_dir) as made:
        made.set("http2", "on")
        made.set("websockets", "on")
        yield made


@pytest.fixture(scope="module")
def origins(site, tmp_path_factory):
    """(host, origin) of each kind."""
    folder, made = tmp_path_factory.mktemp("origins"), {}
    try:
        for kind in KINDS:
            origin = RealOrigin(kind, folder / kind, site.address(), site.first.port)
            made[kind] = (
                site.name(origin.host) if kind != "nginx-h2c" else in_http2(site, origin.host),
                origin,
            )
        for host, origin in made.values():
            origin.wait(lambda host=host: site.get(host, "/started").status < 500)
        yield made
    finally:
        for _, origin in made.values():
            origin.close()


def in_http2(site, address):
    """A name of another zone, whose origins are asked in HTTP/2."""
    zone_id, host = site.server.make_zone("h2.example"), "www.h2.example"
    for setting in ("origin_h2c", "http2", "websockets"):
        answer = site.server.call("PATCH", f"/zones/{zone_id}/settings/{setting}", {"value": "on"})
        assert answer.status == 200, answer
    assert site.server.make_record(zone_id, "A", host, address, proxied=True).status == 200
    return host


def statuses(address, data):
    """Of the answers to some bytes, in order, until the connection ends."""
    found = []
    with connected(address) as connection, connection.makefile("rb") as stream:
        connection.sendall(data)
        try:
            while (answer := read_answer(stream)) is not None:
                if answer.status >= 200:
                    found.append(answer.status)
        except ConnectionError:
            pass
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "form", "outcome"), FORMS, ids=[row[0] for row in FORMS])
def test_a_form_is_read_in_one_way(site, origins, kind, name, form, outcome):
    host, origin = origins[kind]
    number = [row[0] for row in FORMS].index(name)
    identity = f"f{number:03d}"
    paths, refusal = outcome

    got = statuses(site.http, written(form, host.encode(), identity.encode()))
    probe = site.get(host, f"/{identity}-probe")
    site.server.wait_until(lambda: any(path == f"/{identity}-probe" for _, path in origin.seen), 180)

    refusals = refusal if isinstance(refusal, tuple) else (refusal,)
    assert (got[-1] in refusals) == (refusal is not None), got
    assert probe.status < 500
    own = [(ray, path) for ray, path in origin.seen if path.startswith(f"/{identity}-")]
    complete = paths if refusal is None else ()  # one that is cut off in its body may or may not be logged
    seen = [path.removeprefix(f"/{identity}-") for _, path in own]
    assert [path for path in seen if path not in ("probe", *set(paths).difference(complete))] == list(
        complete
    )
    assert len(got) == len(complete) + (refusal is not None)
    assert_rays(own)


def assert_rays(seen):
    rays = [ray for ray, _ in seen]
    assert all(RAY.fullmatch(ray) for ray in rays), seen
    assert len(set(rays)) == len(rays)


@pytest.fixture
def in_http2_to(site, authority):
    """A form in HTTP/2, and a request behind it on the same connection: how both have ended."""
    context = client_context(authority)
    context.set_alpn_protocols(["h2"])

    def ask(host, identity, form):
        with secured(site, context, host) as connection:
            client = Http2Socket(connection)
            form = http2_forms.written(form, host.encode(), identity.encode())
            number = client.say(form.fields, *form.frames)
            client.wait(number)
            end = client.say(fields(b"GET", b"/%b-end" % identity.encode(), authority=host.encode()))
            client.wait(end)
            assert client.goaway is None
            return form, ended(client.answers[number]), ended(client.answers[end])

    return ask


def ended(answer):
    """As a form's outcome says it."""
    if answer.status is None:
        return CUT_OFF
    return PASSES if answer.status in (200, 404) else answer.status


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_in_http_2_is_read_in_one_way(site, origins, in_http2_to, kind):
    host, origin = origins[kind]
    got, due = {}, {}
    for number, (name, form) in enumerate(http2_forms.FORMS.items()):
        identity = f"s{number:03d}"
        form, outcome, end = in_http2_to(host, identity, form)
        if form.outcome == UPGRADE and outcome != CUT_OFF:
            outcome = UPGRADE
        got[identity, name], due[identity, name] = (outcome, end), (form.outcome, PASSES)
    assert got == due

    site.server.wait_until(lambda: any(path == f"/{identity}-end" for _, path in origin.seen), 180)
    seen = [(ray, path) for ray, path in origin.seen if path.startswith("/s")]
    assert_rays(seen)
    for identity, name in due:
        paths = [path.removeprefix(f"/{identity}-") for _, path in seen if path.startswith(f"/{identity}-")]
        outcome, _ = due[identity, name]
        if outcome in (CUT_OFF, UPGRADE) and paths[:1] == ["a"]:  # it may or may not be logged
            del paths[0]
        assert paths == (["a", "end"] if outcome == PASSES else ["end"]), name


def test_a_form_in_http_2_arrives_as_it_was_meant(site, in_http2_to):
    """Byte for byte: one head, with each field as it was said and one framing; and the body of its DATA."""
    host, origin = site.origin()
    for number, (name, form) in enumerate(http2_forms.FORMS.items()):
        identity = f"s{number:03d}"
        form, _, end = in_http2_to(host, identity, form)
        assert end == PASSES
        # Not the last ones: those that were cut off are read to their end later than what follows them.
        arrived = [one for one in origin.requests if b"/%b-a" % identity.encode() in one[0].split(b"\r\n")[0]]
        if form.outcome == PASSES:
            assert [as_read(*request) for request in arrived] == [as_meant(form, host)], name
        else:
            assert form.outcome in (CUT_OFF, UPGRADE) or not arrived, name
    paths = [head.split(b" ", 2)[1] for head in origin.heads]
    assert all(re.fullmatch(rb"/s[0-9]{3}-(a|end)", path) for path in paths), paths


DROPPED = (b"te", b"expect", b"host")
OF_THE_EDGE = re.compile(rb"edge-|via|x-forwarded-|cdn-loop|accept-encoding|connection")


def as_meant(form, host):
    """(request line, other headers, framing, body) of what is to arrive."""
    said = dict(form.fields)
    body = b"".join(piece for piece in form.frames if isinstance(piece, bytes))
    crumbs = [value for name, value in form.fields if name == b"cookie"]
    headers = [
        one for one in form.fields if not one[0].startswith(b":") and one[0] not in (*DROPPED, b"cookie")
    ]
    framing = [(name, b"%d" % int(value)) for name, value in headers if name == b"content-length"]
    if not framing and form.frames:
        framing = [(b"transfer-encoding", b"chunked")]
    headers = [one for one in headers if one[0] != b"content-length"]
    headers += [(b"cookie", b"; ".join(crumbs))] * bool(crumbs)
    asked = said.get(b":authority", said.get(b"host"))
    line = b"%b %b HTTP/1.1" % (said[b":method"], said[b":path"])
    return line, sorted([*headers, (b"host", asked)]), framing, body


def as_read(head, body):
    """The same of a request in HTTP/1.1, whose chunks are read here."""
    line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    headers = [tuple(one.split(b": ", 1)) for one in lines]
    framing = [one for one in headers if one[0] in (b"content-length", b"transfer-encoding")]
    headers = [one for one in headers if one not in framing and not OF_THE_EDGE.match(one[0])]
    if framing == [(b"transfer-encoding", b"chunked")]:
        pieces, body = body, b""
        while pieces:
            size, _, pieces = pieces.partition(b"\r\n")
            octets = int(size, 16)
            body, pieces = body + pieces[:octets], pieces[octets + 2 :]
    return line, sorted(headers), framing, body


def test_nothing_else_was_read_by_any_origin(origins):
    for _, origin in origins.values():
        assert_rays(origin.seen)
        assert not [path for _, path in origin.seen if "smuggled" in path]


def test_there_are_enough_forms():
    assert len(FORMS) >= 60
    assert len(http2_forms.FORMS) >= 100
    assert len({name for name, _, _ in FORMS}) == len(FORMS)


MUTATIONS = 150
LEFT_SECONDS = 0.3  # when nothing comes, because the edge waits for more: left, whatever would have come
PIECES = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"0", b"5", b"chunked", b"\xff"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n"),
    *(b"0\r\n\r\n", b"GET / HTTP/1.1\r\n", b"Host: x\r\n"),
)


def test_forms_that_are_damaged_at_random_are_read_in_one_way_too(site, origins):
    chance = random.Random(20_261_121)
    host, origin = origins["nginx"]
    for number in range(MUTATIONS):
        identity = f"m{number:03d}"
        data = written(chance.choice(FORMS)[1], host.encode(), identity.encode())
        head, found, tail = data.partition(b"HTTP/1.1\r\n")
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(tail) + 1)
            cut = chance.choice((0, 0, 1, 2))
            tail = tail[:at] + chance.choice(PIECES) + tail[at + cut :]
        with connected(site.http) as connection, connection.makefile("rb") as stream:
            connection.sendall(head + found + tail)
            connection.settimeout(LEFT_SECONDS)
            with suppress(ConnectionError, TimeoutError, AssertionError, ValueError):
                while read_answer(stream) is not None:
                    pass
    assert site.get(host, "/last").status == 200
    site.server.wait_until(lambda: any(path == "/last" for _, path in origin.seen), 180)
    assert_rays([row for row in origin.seen if row[1] != "-"])
