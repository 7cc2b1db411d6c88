"""Machines without control: they join with a token, answer, are waited for, and live through cuts.

One server with control and two nodes, each behind a line of its own; `serves` goes on when it is cut off,
`stops` does not. The tests leave all of them live.
"""

import asyncio
import base64
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from itertools import count
from urllib.parse import urlsplit

import dns.edns
import dns.exception
import dns.message
import dns.query
import dns.tsig
import dns.tsigkeyring
import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.dns.cookies import PURPOSE as COOKIES
from edgestead.model.sealing import derived
from edgestead.model.tsig import PURPOSE as TSIG
from edgestead.server.errors import StartError
from edgestead.server.nodes import control_part, identity, standing
from edgestead.server.nodes.registry import FileRegistry
from edgestead.server.places import private_place
from edgestead.testing.server import EdgeServer, wait_until
from tests.support.asking import by_udp
from tests.support.canary import found_at
from tests.support.edge_nodes import LIVE_SECONDS_MAX, EdgeNodes
from tests.support.health import rows as health_rows
from tests.support.pairs import issued

NOTE = "a-note-that-stays-with-control"
TRIES = 10  # a machine that stands still for seconds ends leases


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    made = EdgeNodes(folder, settings="barrier-ms = 2000")
    try:
        made.main.start()
        made.zone = made.main.make_zone("example.com")
        made.numbers = count(1)
        made.join("serves")
        made.join("stops", stale="stop")
        yield made
    finally:
        made.close()


@pytest.fixture
def lines(nodes):
    """Every line is whole again after the test, and every node live."""
    yield nodes.lines
    for name, line in nodes.lines.items():
        line.heal()
        wait_until_live(nodes, name)


def wait_until_live(nodes, name):
    node = nodes.nodes[name]
    node.wait_until(
        lambda: all(group["live"] and group["answers"] for group in nodes.standing(name).values()),
        LIVE_SECONDS_MAX,
    )


def write(nodes):
    """A new record; returns its name and address when the write was answered."""
    return _written(nodes)[:2]


def _written(nodes):
    number = next(nodes.numbers)
    name, address = f"w{number}.example.com", f"192.0.{number >> 8}.{number & 255}"
    answer = nodes.main.make_record(nodes.zone, "A", name, address, comment=NOTE)
    assert answer.status == 200, answer
    return name, address, answer.headers.get("edge-behind", "")


def write_to_all(nodes):
    """One whose answer names no node as behind: a machine that stood still ends leases."""
    found = []

    def names_nobody():
        found.append(_written(nodes))
        return not found[-1][2]

    wait_until(names_nobody, LIVE_SECONDS_MAX)
    return found[-1][:2]


def told_behind(nodes, method="POST"):
    """Who is behind, by the header of a write's or a read's answer; None without the header."""
    number = next(nodes.numbers)
    body = {"type": "A", "name": f"w{number}.example.com", "content": "192.0.2.1"}
    base = urlsplit(nodes.main.ready["api_base"])
    connection = http.client.HTTPConnection(base.netloc, timeout=300)
    headers = {"authorization": f"Bearer {nodes.main.ready['api_token']}", "content-type": "application/json"}
    path = f"{base.path}/zones/{nodes.zone}/dns_records"
    connection.request(method, path, json.dumps(body) if method == "POST" else None, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.getheader("edge-behind")


def behind(nodes):
    text = nodes.main.call("GET", "//metrics").body
    return int(re.search(r"^edge_feed_nodes_behind(?:{[^}]*})? (\d+)", text, re.MULTILINE)[1])


def test_what_the_api_has_answered_every_node_answers(nodes):
    for _ in range(10):
        name, address = write_to_all(nodes)
        for node in (nodes.main, *nodes.nodes.values()):
            assert node.dig(name) == [address]
            assert node.dig(name, tcp=True) == [address]
    wait_until(lambda: behind(nodes) == 0 and told_behind(nodes) is None, LIVE_SECONDS_MAX)


def test_a_node_passes_a_proxied_name_on_at_its_edge(nodes):
    """The edge of a node has the rules and names of its group, and refuses what it does not serve."""
    assert edge_status(nodes.nodes["serves"], 300) >= 400


def edge_status(server, seconds):
    """Of a host that it does not serve; None where it gives no answer for so long, or hangs up."""
    host, _, port = server.ready["http"].removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=seconds)
    try:
        connection.request("GET", "/", headers={"Host": "unknown.example.com"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def test_a_node_holds_no_token_no_hash_no_note_and_no_key_of_control(nodes):
    write(nodes)
    token = nodes.main.ready["api_token"]
    hidden = {
        "the token": token.encode(),
        "its hash": hashlib.sha256(token.encode()).digest(),
        "its hash in hex": hashlib.sha256(token.encode()).hexdigest().encode(),
        "the key": nodes.main.ready["api_key"].encode(),
        "a note": NOTE.encode(),
        "the seal": (nodes.folder / "main" / "seal.key").read_bytes().strip(),
        "the vault's key": (nodes.identities / "cluster.key").read_bytes().strip(),
    }

    found = found_at(nodes.nodes["serves"], hidden | {"what it serves": b"example"})

    assert {what for what, _ in found} == {"what it serves"}, found
    assert ("what it serves", "relay") in found, "the test reads no memory"


def test_a_relay_that_dies_is_back_and_nothing_is_older(nodes):
    for name, node in nodes.nodes.items():
        before = node.children()["relay"]
        os.kill(before, signal.SIGKILL)
        record, address = write(nodes)
        node.wait_for_life("relay", before)
        wait_until_live(nodes, name)
        assert node.dig(record) == [address]


def test_a_control_that_dies_is_back_and_every_node_follows(nodes):
    before = nodes.main.children()["control"]
    os.kill(before, signal.SIGKILL)
    nodes.main.wait_for_life("control", before)
    nodes.main.wait_until(lambda: answers(nodes), LIVE_SECONDS_MAX)

    name, address = write_to_all(nodes)

    for node in nodes.nodes.values():
        assert node.dig(name) == [address]
    wait_until(lambda: behind(nodes) == 0, LIVE_SECONDS_MAX)


def answers(nodes):
    try:
        return nodes.main.call("GET", "//health/live").status == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    "directions",
    [(), pytest.param(("up",), marks=pytest.mark.long), pytest.param(("down",), marks=pytest.mark.long)],
    ids=["both", "up", "down"],
)
def test_who_is_cut_off_answers_as_its_policy_says_and_holds_writes_up_once(nodes, lines, directions):
    old, old_address = write_to_all(nodes)
    for line in lines.values():
        line.cut(*directions)

    name, address = write(nodes)  # after the leases
    again, _ = write(nodes)

    serves, stops = nodes.nodes["serves"], nodes.nodes["stops"]
    assert behind(nodes) == 2
    assert told_behind(nodes) == "serves, stops"
    assert told_behind(nodes, "GET") is None
    assert serves.dig(old) == [old_address]
    is_told = directions == ("up",)  # what control sends still arrives there
    assert serves.dig(name) == ([address] if is_told else ["NXDOMAIN"])
    assert nodes.standing("stops")["dns"]["answers"] is False
    assert silent(stops, old)
    for line in lines.values():
        line.heal()
    for node_name, node in nodes.nodes.items():
        wait_until_live(nodes, node_name)
        node.wait_until(lambda one=node: not silent(one, old), LIVE_SECONDS_MAX)
        assert node.dig(name) == [address]
        assert node.dig(again) != ["NXDOMAIN"]
    nodes.main.wait_until(lambda: behind(nodes) == 0, LIVE_SECONDS_MAX)


def test_no_write_waits_for_a_node_of_which_its_invitation_says_so(nodes):
    """It gets them all the same; that it is cut off is an alarm, and no write says so."""
    far = nodes.join("far", wait=False)
    try:
        told, address = write(nodes)
        wait_until(lambda: far.dig(told) == [address], LIVE_SECONDS_MAX)
        lives = {"main": "leads", "serves": "live", "stops": "live", "far": "live"}
        wait_until(lambda: states(nodes) == (0, lives), LIVE_SECONDS_MAX)
        nodes.lines["far"].cut()

        missed = answered_without(nodes, "far")

        assert far.dig(missed) == ["NXDOMAIN"]
        wait_until(lambda: behind(nodes) == 0 and told_behind(nodes) is None, LIVE_SECONDS_MAX)
        wait_until(lambda: "far" in late_in_health(nodes), LIVE_SECONDS_MAX)
        wait_until(lambda: states(nodes) == (1, lives | {"far": "away"}), LIVE_SECONDS_MAX)
        nodes.lines["far"].heal()
        wait_until(lambda: "far" not in late_in_health(nodes), LIVE_SECONDS_MAX)
        wait_until(lambda: far.dig(missed) != ["NXDOMAIN"], LIVE_SECONDS_MAX)
    finally:
        far.close()
        nodes.lines.pop("far").close()
        del nodes.nodes["far"]
        FileRegistry(nodes.identities / control_part.NODES).remove("far")


def answered_without(nodes, name):
    """The name of a write that was answered while a node that is cut off still had its lease."""
    member, place = identity.member_of(nodes.identities), nodes.place
    found = []

    def has_its_lease():
        found.append(write(nodes)[0])
        standings = asyncio.run(standing.ask(member, [place])) or {}  # nothing, where the machine is slow
        followed = standings.get(name, {}).get("dns")
        return followed is not None and followed.is_live and followed.behind

    for _ in range(TRIES):
        if has_its_lease():
            return found[-1]
        nodes.lines[name].heal()
        wait_until_live(nodes, name)
        nodes.lines[name].cut()
    raise AssertionError(f"each of {TRIES} writes waited for the lease of {name}")


def states(nodes):
    """As `edgecli cluster status` shows them, with its exit status."""
    command = ["cluster", "status", "--json", "--cluster", str(nodes.main.data_dir)]
    done = CliRunner().invoke(cli, command)
    return done.exit_code, {one["name"]: one["state"] for one in json.loads(done.stdout)["nodes"]}


def late_in_health(nodes):
    return {row["subject"] for row in health_rows(nodes.main) if row["check"] == "feed"}


def silent(node, name):
    """Whether no answer comes at all."""
    host, _, port = node.ready["dns"].rpartition(":")
    try:
        dns.query.udp(dns.message.make_query(name, "A"), host, port=int(port), timeout=1)
    except dns.exception.Timeout:
        return True
    return False


def test_a_node_answers_from_its_files_when_nobody_is_there(nodes, lines):
    name, address = write_to_all(nodes)
    node = nodes.nodes["serves"]
    lines["serves"].cut()
    lines["serves"].drop()
    node.stop()

    nodes.start_again("serves")

    assert node.dig(name) == [address]
    assert nodes.standing("serves")["dns"]["live"] is False


def test_secrets_of_dns_reach_a_nodes_memory(nodes):
    """Whoever comes from another machine is known: by his key, and by the cookie that he got there."""
    node, main = nodes.nodes["serves"], nodes.main
    keys = f"/accounts/{main.ready['account_id']}/secondary_dns/tsigs"
    made = main.call("POST", keys, {"name": "xfr.example.com"}).result
    keyring = dns.tsigkeyring.from_text({made["name"]: (made["algo"], made["secret"])})

    for tcp in (False, True):
        node.wait_until(lambda over=tcp: signs(node, keyring, tcp=over), LIVE_SECONDS_MAX)
        cookie = cookie_of(main, b"a client", tcp=tcp)
        node.wait_until(lambda over=tcp, one=cookie: cookie_of(node, one, tcp=over) == one, LIVE_SECONDS_MAX)
    transfer = dns.message.make_query("example.com", "AXFR")
    transfer.use_tsig(keyring)
    host, _, port = node.ready["dns"].rpartition(":")
    reply = dns.query.tcp(transfer, host, LIVE_SECONDS_MAX, int(port), one_rr_per_rrset=True)
    assert reply.had_tsig
    assert len(reply.answer) > 2
    seal = bytes.fromhex((nodes.folder / "main" / "seal.key").read_text())
    assert not holders(node, derived(seal, TSIG), derived(seal, COOKIES), made["secret"].encode())
    before = node.children()["dns-tcp"]
    os.kill(before, signal.SIGKILL)
    node.wait_for_life("dns-tcp", before)
    assert signs(node, keyring, tcp=True)


def signs(server, keyring, *, tcp):
    """Whether an answer to a signed question is signed; the signature is verified."""
    query = dns.message.make_query("example.com", "SOA")
    query.use_tsig(keyring)
    try:
        return ask(server, query, tcp=tcp).had_tsig
    except dns.tsig.PeerBadKey:
        return False


def cookie_of(server, cookie, *, tcp):
    """The whole cookie of an answer to a question with this one."""
    option = dns.edns.GenericOption(dns.edns.OptionType.COOKIE, cookie)
    reply = ask(server, dns.message.make_query("example.com", "SOA", options=[option]), tcp=tcp)
    (answered,) = [one for one in reply.options if one.otype == dns.edns.OptionType.COOKIE]
    return answered.to_wire()


def ask(server, query, *, tcp):
    host, _, port = server.ready["dns"].rpartition(":")
    return dns.query.tcp(query, host, LIVE_SECONDS_MAX, int(port)) if tcp else by_udp(query, host, int(port))


def holders(node, *secrets):
    """The files of a node that have one of these in clear."""
    files = [path for path in node.data_dir.rglob("*") if path.is_file()]
    return [path for path in files if any(secret in path.read_bytes() for secret in secrets)]


def test_clearances_are_signed_with_the_same_key_everywhere(nodes):
    node, main = nodes.nodes["serves"], nodes.main
    zone = main.make_zone("shown.example")
    path = f"/zones/{zone}/rulesets/phases/http_request_firewall_custom/entrypoint"
    assert main.call("PUT", path, {"rules": [{"action": "challenge", "expression": "true"}]}).status == 200
    assert main.make_record(zone, "A", "www.shown.example", "192.0.2.1", proxied=True).status == 200
    (newest, *_) = json.loads((nodes.folder / "main" / "challenge-keys.json").read_text())

    node.wait_until(lambda: challenged_with(node) == newest["id"], LIVE_SECONDS_MAX)

    assert not (node.data_dir / "challenge-keys.json").exists()
    assert not holders(node, newest["secret"].encode(), bytes.fromhex(newest["secret"]))


def challenged_with(server):
    """The id of the key in a challenge's page."""
    host, _, port = server.ready["http"].removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=LIVE_SECONDS_MAX)
    headers = {"Host": "www.shown.example", "Accept": "text/html", "User-Agent": "Browser/1.0"}
    connection.request("GET", "/", headers=headers)
    page = connection.getresponse().read()
    connection.close()
    found = re.search(rb"token=([0-9a-f]{8})\.", page)
    return found and found[1].decode()


def test_certificates_reach_a_nodes_edge_and_stay_out_of_its_files(nodes):
    place = private_place()
    node = nodes.join("secure", "--https", "{}:{}".format(*place))
    pair = issued("www.example.com", now=datetime.now(UTC))
    body = {"certificate": pair.chain, "private_key": pair.key}

    uploaded = nodes.main.call("POST", f"/zones/{nodes.zone}/custom_certificates", body)

    assert uploaded.status == 200, uploaded
    node.wait_until(lambda: shown_at(place, "www.example.com") == der_of(pair), LIVE_SECONDS_MAX)
    before = node.children()["edge-0"]
    os.kill(before, signal.SIGKILL)
    node.wait_for_life("edge-0", before)
    node.wait_until(lambda: shown_at(place, "www.example.com") == der_of(pair), LIVE_SECONDS_MAX)
    key = "".join(pair.key.splitlines()[1:-1])
    secrets = [pair.key.encode(), base64.b64decode(key), key.encode()]
    files = [path.read_bytes() for path in node.data_dir.rglob("*") if path.is_file()]
    assert not [1 for content in files for secret in secrets if secret in content]


def test_who_is_removed_is_cut_off_and_holds_up_no_write(nodes):
    """The node of the test before."""
    leaves = nodes.nodes["secure"]
    FileRegistry(nodes.identities / "nodes.json").remove("secure")
    leaves.wait_until(lambda: not nodes.standing("secure")["dns"]["live"], LIVE_SECONDS_MAX)

    name, _ = write(nodes)

    assert leaves.dig(name) == ["NXDOMAIN"]
    wait_until(lambda: behind(nodes) == 0, LIVE_SECONDS_MAX)
    leaves.wait_for_log("was this node removed")
    assert leaves.stop() == 0


def test_a_node_follows_a_server_that_was_restored(nodes, tmp_path):
    """The last one: the server is another afterwards."""
    main, node, key = nodes.main, nodes.nodes["serves"], "cluster/cluster.key"
    edgecli("backup", tmp_path / "sealed", "--data-dir", main.data_dir)
    edgecli("backup", tmp_path / "whole", "--with-keys", "--data-dir", main.data_dir)
    assert main.stop() == 0
    sealed, whole = (EdgeServer(nodes.folder / name, *main.flags) for name in ("sealed", "again"))
    edgecli("restore", tmp_path / "sealed", "--data-dir", sealed.data_dir)
    edgecli("restore", tmp_path / "whole", "--data-dir", whole.data_dir)

    secret = (main.data_dir / key).read_bytes()
    inside = [path for path in (tmp_path / "sealed").rglob("*") if path.is_file()]
    assert not [path for path in inside if secret.strip() in path.read_bytes() or path.name == "node.key"]
    with pytest.raises(StartError, match=r"cluster\.key is missing: put it back"):
        control_part._found(sealed.data_dir / "cluster")
    nodes.main = whole
    whole.start()
    assert whole.ready["api_token"] == main.ready["api_token"]

    name, address = write(nodes)
    node.wait_until(lambda: node.dig(name) == [address], LIVE_SECONDS_MAX)
    assert node.dig("example.com", "SOA") == whole.dig("example.com", "SOA")


def edgecli(*arguments):
    command = [sys.executable, "-P", "-m", "edgestead", *map(str, arguments)]
    subprocess.run(command, capture_output=True, check=True, timeout=LIVE_SECONDS_MAX)


def shown_at(address, host):
    """The certificate (DER) that a client gets; None when it gets none."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, LIVE_SECONDS_MAX) as plain,
            asking.wrap_socket(plain, server_hostname=host) as secured,
        ):
            return secured.getpeercert(binary_form=True)
    except OSError:
        return None


def der_of(pair):
    return ssl.PEM_cert_to_DER_cert(pair.chain)


@pytest.mark.long
def test_a_node_that_was_cut_off_for_too_long_answers_servfail_and_its_edge_nothing_until_it_is_back(nodes):
    config = nodes.folder / "short.toml"
    config.write_text("[cluster]\nstale-hours = 0\n")
    node = nodes.join("short", "--config", str(config))
    name, address = write(nodes)
    assert node.dig(name) == [address]

    nodes.lines["short"].cut()
    node.wait_until(lambda: node.dig(name) == ["SERVFAIL"], LIVE_SECONDS_MAX)
    assert node.dig(name, tcp=True) == ["SERVFAIL"]
    node.wait_until(lambda: not nodes.standing("short")["edge"]["answers"], LIVE_SECONDS_MAX)
    assert edge_status(node, 2) is None
    nodes.lines["short"].heal()

    node.wait_until(lambda: node.dig(name) == [address], LIVE_SECONDS_MAX)
    assert node.dig(name, tcp=True) == [address]
    node.wait_until(lambda: edge_status(node, LIVE_SECONDS_MAX) is not None, LIVE_SECONDS_MAX)
    node.stop()
