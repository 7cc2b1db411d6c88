"""In a running server: who asks for little does not wait until others' heavy bodies are inspected."""

import socket

import pytest

from tests.edge.conftest import Site
from tests.edge.talk import PATIENCE_SECONDS, read_answer, send
from tests.edge.test_managed_server import deployed

HEAVY = 12
BODY = b"<r>" + b"".join(b"<a b='%d'>select %d</a>" % (n, n) for n in range(4_000)) + b"</r>"
# Each of these looks at every value by itself.
RULES = "\n".join(
    f'SecRule XML:/*|XML://@* "@endsWith never{n}" "id:{942_100 + n},phase:2,block,t:none,t:urlDecodeUni,'
    f"t:htmlEntityDecode,severity:CRITICAL,tag:'paranoia-level/1',"
    f"setvar:'tx.inbound_anomaly_score_pl1=+5'\""
    for n in range(20)
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    (folder / "crs" / "rules").mkdir(parents=True)
    (folder / "crs" / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/4.0.0"\n')
    (folder / "crs" / "rules" / "one.conf").write_text(RULES)
    made = Site(folder, "--crs", str(folder / "crs"))
    yield made
    made.close()


def connect(site, source):
    host, _, port = site.http.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE_SECONDS, (source, 0))


@pytest.mark.long
def test_requests_of_another_address_are_answered_before_the_heavy_bodies_are(site):
    host, origin = deployed(site)
    before = len(origin.requests)
    fields = f"host: {host}\r\ncontent-type: text/xml\r\ncontent-length: {len(BODY)}\r\n\r\n"
    head = f"POST /heavy HTTP/1.1\r\n{fields}"
    heavy = [connect(site, "127.0.0.2") for _ in range(HEAVY)]
    light = connect(site, "127.0.0.3")
    for connection in heavy:
        send(connection, head.encode() + BODY)
    with light, light.makefile("rb") as stream:
        for _ in range(4):
            light.sendall(f"GET /light HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
            assert read_answer(stream).status == 200
    for connection in heavy:
        with connection, connection.makefile("rb") as stream:
            assert read_answer(stream).status == 200

    order = [head.split()[1] for head, _ in origin.requests[before:]]
    assert order.count(b"/heavy") == HEAVY
    assert order.index(b"/light") < HEAVY - 1
    assert order[-1] == b"/heavy"
