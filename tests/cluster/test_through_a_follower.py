"""A node that follows is as good as any for a client: what is written there is read everywhere at once."""

import base64
import json
import os
import signal
import socket
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from itertools import count

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.rrset
import dns.tsig
import dns.update
import pytest

from edgestead.rest.limits import BODY_BYTES_MAX
from edgestead.testing.server import wait_until
from tests.cluster.test_control_nodes import FAILED, SECONDS_MAX, answered, contents_of, zone_made
from tests.server.test_renewal import edgecli


@pytest.fixture(scope="module")
def follower(nodes):
    return nodes.servers[nodes.followers[0]]


@pytest.fixture(scope="module")
def zone(follower):
    return zone_made(follower, "example.net")


def ask(server, method, path, body=None):
    return answered(lambda: server.call(method, path, body))


def at_all(nodes, path):
    """The same answer of every node."""
    results = [ask(server, "GET", path).result for server in nodes.servers.values()]
    assert results[0] == results[1] == results[2]
    return results[0]


def test_a_zone_is_made_changed_and_deleted(nodes, follower):
    made = ask(follower, "POST", "/zones", {"name": "other.example"}).result
    path = f"/zones/{made['id']}"
    assert at_all(nodes, path)["name"] == "other.example"

    assert ask(follower, "PATCH", path, {"paused": True}).result["paused"]
    assert at_all(nodes, path)["paused"]
    assert ask(follower, "DELETE", path).result["id"] == made["id"]
    for server in nodes.servers.values():
        assert ask(server, "GET", path).status in (403, 404)


def test_records_are_made_replaced_changed_and_deleted(nodes, follower, zone):
    records = f"/zones/{zone}/dns_records"
    body = {"type": "A", "name": "www.example.net", "content": "192.0.2.1", "ttl": 300}
    one = f"{records}/{ask(follower, 'POST', records, body).result['id']}"

    assert ask(follower, "PUT", one, body | {"content": "192.0.2.2"}).result["content"] == "192.0.2.2"
    assert at_all(nodes, one)["content"] == "192.0.2.2"
    ask(follower, "PATCH", one, {"comment": "changed"})
    assert at_all(nodes, one)["comment"] == "changed"
    for server in nodes.servers.values():
        wait_until(lambda at=server: at.dig("www.example.net") == ["192.0.2.2"], SECONDS_MAX)
    batch = {"posts": [body | {"name": f"b{n}.example.net"} for n in range(20)], "deletes": []}
    assert len(ask(follower, "POST", f"{records}/batch", batch).result["posts"]) == 20
    assert len(at_all(nodes, f"{records}?name.startswith=b&per_page=100")) == 20
    ask(follower, "DELETE", one)
    for server in nodes.servers.values():
        wait_until(lambda at=server: at.dig("www.example.net") in ([], ["NXDOMAIN"]), SECONDS_MAX)


def test_a_write_whose_leader_dies_behind_it_is_answered_as_it_was(nodes, follower, zone):
    """It is in the log, and waits for a node that stands still, when the leader is killed."""
    numbers = count(1)
    wait_until(lambda: is_answered_behind_its_leader(nodes, zone, f"behind{next(numbers)}"), SECONDS_MAX)


def is_answered_behind_its_leader(nodes, zone, name):
    """False where the leader has answered before, or the next one comes too late: on a busy machine."""
    leader = nodes.servers[nodes.leader]
    asked, third = (server for server in nodes.servers.values() if server is not leader)
    answers, before, told = [], contents_of(asked)["records"], len(asked.log)

    def ask_for_it():
        with suppress(*FAILED):  # it lost its place, and ended
            answers.append(asked.make_record(zone, "A", f"{name}.example.net", "192.0.2.9"))

    asking = threading.Thread(target=ask_for_it)
    still = [third.pid, *third.children().values()]
    for pid in still:
        os.kill(pid, signal.SIGSTOP)
    try:
        asking.start()
        wait_until(
            lambda: contents_of(asked)["records"] != before or answers or not asking.is_alive(), SECONDS_MAX
        )
        os.kill(leader.wait_for_life("control"), signal.SIGKILL)
        asking.join(SECONDS_MAX)
    finally:
        for pid in still:
            os.kill(pid, signal.SIGCONT)
    made = at_all(nodes, f"/zones/{zone}/dns_records?name={name}.example.net")
    assert len(made) <= 1
    if "was lost with the leader" not in asked.log[told:] or [one.status for one in answers] != [200]:
        return False
    assert made == [answers[0].result]
    return True


def test_a_dynamic_update_is_the_leaders_too(nodes, follower, zone):
    path = f"/accounts/{follower.ready['account_id']}/secondary_dns/tsigs"
    made = ask(follower, "POST", path, {"name": "key.example.net", "update": {}}).result
    key = dns.tsig.Key(made["name"], base64.b64decode(made["secret"]), made["algo"])
    host, _, port = follower.ready["dns"].rpartition(":")

    def is_done():
        message = dns.update.UpdateMessage("example.net", keyring=key)
        message.replace("dynamic", 300, "A", "192.0.2.4")
        answer = dns.query.tcp(message, host, port=int(port), timeout=SECONDS_MAX)
        assert answer.rcode() in (
            dns.rcode.NOERROR,
            dns.rcode.SERVFAIL,
        )  # there may be no leader for a moment
        return answer.rcode() == dns.rcode.NOERROR

    wait_until(is_done, SECONDS_MAX)
    for server in nodes.servers.values():
        wait_until(lambda at=server: at.dig("dynamic.example.net") == ["192.0.2.4"], SECONDS_MAX)


class Primary:
    """Of one zone, which is asked for once a day."""

    def __init__(self, zone):
        self.zone, self.serial = zone, 1
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):  # closed
            while True:
                sock, _ = self._listening.accept()
                with sock, suppress(OSError, EOFError):
                    asked, _ = dns.query.receive_tcp(sock)
                    answer = dns.message.make_response(asked)
                    soa = f"ns.{self.zone}. h.{self.zone}. {self.serial} 86400 86400 864000 300"
                    ns = f"ns.{self.zone}."
                    answer.answer = [
                        dns.rrset.from_text(f"{self.zone}.", 300, "IN", kind, text)
                        for kind, text in (("SOA", soa), ("NS", ns), ("SOA", soa))
                    ]
                    dns.query.send_tcp(sock, answer.to_wire(want_shuffle=False))

    def close(self):
        self._listening.close()


def test_a_notify_is_the_leaders_too(nodes, follower):
    primary = Primary("secondary.example")
    try:
        peers = f"/accounts/{follower.ready['account_id']}/secondary_dns/peers"
        peer = {"name": "primary", "ip": "127.0.0.1", "port": primary.port, "ixfr_enable": False}
        peer_id = ask(follower, "POST", peers, peer).result["id"]
        body = {"name": primary.zone, "type": "secondary"}
        path = f"/zones/{ask(follower, 'POST', '/zones', body).result['id']}/secondary_dns/incoming"
        ask(follower, "POST", path, {"name": "in", "peers": [peer_id]})
        wait_until(lambda: ask(follower, "GET", path).result["soa_serial"] == 1, SECONDS_MAX)
        primary.serial = 2
        host, _, port = follower.ready["dns"].rpartition(":")
        notice = dns.message.make_query(primary.zone, "SOA", flags=dns.flags.AA)
        notice.set_opcode(dns.opcode.NOTIFY)

        def is_heard():
            """A notice is a hint, and there may be no leader for a moment."""
            with suppress(dns.exception.Timeout):
                dns.query.udp(notice, host, port=int(port), timeout=5)
            return ask(follower, "GET", path).result["soa_serial"] == 2

        wait_until(is_heard, SECONDS_MAX)
    finally:
        primary.close()


def test_a_refusal_is_the_leaders(nodes, follower, zone):
    records, bad = f"/zones/{zone}/dns_records", {"type": "A", "name": "x", "content": "no address"}
    there = ask(nodes.servers[nodes.leader], "POST", records, bad)

    here = ask(follower, "POST", records, bad)

    assert here.status == there.status == 400
    assert here.body["errors"] == there.body["errors"]


def test_a_body_that_nobody_reads_ends_the_connection_here_too(follower, zone):
    answer = ask(follower, "POST", f"/zones/{zone}/dns_records", "x" * BODY_BYTES_MAX)

    assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_a_zone_file_of_many_records_is_imported(nodes, follower, zone):
    lines = [f"i{number}.example.net. 300 IN A 192.0.2.7" for number in range(3_000)]
    boundary = "frontier"
    body = "\r\n".join(
        [
            f"--{boundary}",
            'Content-Disposition: form-data; name="file"; filename="zone.txt"',
            "",
            "\n".join(lines),
            f"--{boundary}--",
            "",
        ]
    )
    answer = upload(follower, f"/zones/{zone}/dns_records/import", body.encode(), boundary)

    assert answer["result"]["recs_added"] == 3_000
    for server in nodes.servers.values():
        wait_until(lambda s=server: s.dig("i2999.example.net") == ["192.0.2.7"], SECONDS_MAX)


def upload(server, path, body, boundary):
    request = urllib.request.Request(
        server.ready["api_base"] + path,
        body,
        {
            "Authorization": f"Bearer {server.ready['api_token']}",
            "Content-Type": f"multipart/form-data; boundary={boundary}",
        },
    )
    answers = []

    def is_taken():  # there may be no leader for a moment
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
                answers.append(json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            error.close()
        return bool(answers)

    wait_until(is_taken, SECONDS_MAX)
    return answers[0]


def test_key_values_are_written_and_read_at_any_node(nodes, follower):
    account = follower.ready["account_id"]
    spaces = f"/accounts/{account}/storage/kv/namespaces"
    space = ask(follower, "POST", spaces, {"title": "shared"}).result["id"]

    ask(follower, "PUT", f"{spaces}/{space}/values/key", "value")

    for server in nodes.servers.values():
        found = ask(server, "GET", f"{spaces}/{space}/values/key")
        assert (found.status, str(found.body)) == (200, "value")


def test_new_credentials_at_a_follower_are_those_of_the_cluster(nodes, follower):
    """The last of this module: its servers were read from files with the former token."""
    old = follower.ready["api_token"]

    def renews():
        return edgecli(follower, "credentials", "rotate", "--yes").returncode == 0

    wait_until(renews, SECONDS_MAX)  # there may be no leader for a moment
    new = json.loads((follower.data_dir / "credentials.json").read_bytes())["api_token"]
    for server in nodes.servers.values():
        statuses = [
            answered(lambda s=server, t=token: s.call("GET", "/user", token=t)).status for token in (old, new)
        ]
        assert statuses == [403, 200]
    for server in nodes.servers.values():
        server.wait_until(lambda one=server: token_of(one.data_dir / "credentials.json") == new, SECONDS_MAX)
        server.wait_until(lambda one=server: token_of(one.ready_file) == new, SECONDS_MAX)


def token_of(file):
    return json.loads(file.read_bytes())["api_token"]
