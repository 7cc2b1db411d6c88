"""Stock Knot and BIND follow the catalog zone: a zone comes, goes and changes, and nobody touches them.

They get the lines that `edgecli dns catalog config` prints. BIND listens on an address of an interface only.
NSD knows catalog zones from 4.9 on: where an older one is installed, the next Debian has it for the long run.
"""

import contextlib
import re
import subprocess

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.zone
import pytest

from edgestead.cli.zone.catalog import lines_for
from edgestead.server.places import private_place
from edgestead.testing.server import wait_until
from tests.dns import stock
from tests.dns.stock import Stock
from tests.packaging import bare

CATALOG = "catalog.invalid"
WAIT_SECONDS = 300
NSD_FROM = (4, 9)
KINDS = {"knot": "Knot", "bind": "BIND", "nsd": "NSD"}
"""What `edgecli dns catalog config` calls them."""


class Follower(Stock):
    """A secondary that nobody configures after its start."""

    def __init__(self, program, folder, place, primary, words=None):
        folder.mkdir()
        kind = KINDS[program]
        lines = lines_for(program, primary.replace(":", "@"), CATALOG)
        options, defaults = "", ""
        if program == "bind":  # takes one block of options; and looks at a catalog every 5 s by itself
            lines = lines.removeprefix("options {\n").replace("yes;", "yes min-update-interval 1;")
            inside, _, lines = lines.partition("\n};\n")
            options = f"  allow-transfer {{ any; }};\n{inside}"
        if program == "knot":
            defaults = f'template:\n  - id: default\n    storage: "{folder}"\n'
            lines = lines.replace("template:\n", defaults, 1)
        config = stock.head(kind, folder, place, options) + lines
        super().__init__(kind, folder, config, place, answers=False, program=words)

    def answer(self, name, type_="A"):
        """The rcode, and the texts of what it answers; None without an answer."""
        query = dns.message.make_query(name, type_)
        with contextlib.suppress(dns.exception.Timeout, OSError):
            reply = dns.query.udp(query, self.host, port=self.port, timeout=1)
            return dns.rcode.to_text(reply.rcode()), [str(one) for rrset in reply.answer for one in rrset]
        return None


def version_of_nsd():
    found = subprocess.run([stock.binary("NSD"), "-v"], capture_output=True, text=True, check=False)
    return tuple(map(int, re.search(r"(\d+)\.(\d+)", found.stderr + found.stdout).groups()))


def installed():
    for program in ("knot", "bind", "nsd"):
        if stock.binary(KINDS[program]) and (program != "nsd" or version_of_nsd() >= NSD_FROM):
            yield program


@pytest.fixture
def server(new_server):
    """A server on a free port that tells three secondaries of changes, which start later."""
    places = {
        "knot": private_place(),
        "bind": stock.free_place(),
        "nsd": private_place(),
    }
    told = [flag for host, port in places.values() for flag in ("--notify", f"{host}:{port}")]
    made = new_server("--transfer-to", "127.0.0.0/8", *told).start()
    made.places = places
    return made


@pytest.fixture
def catalog(server):
    path = f"/accounts/{server.ready['account_id']}/secondary_dns/catalog"
    server.call("PUT", path, {"name": CATALOG})


@pytest.fixture
def followers(server, catalog, tmp_path):
    with contextlib.ExitStack() as stack:
        found = []
        for program in installed():
            found.append(Follower(program, tmp_path / program, server.places[program], server.ready["dns"]))
            stack.callback(found[-1].stop)
        if not found:
            pytest.skip(
                "NEITHER KNOT NOR BIND IS INSTALLED: nobody follows the catalog (apt-get install knot)"
            )
        yield found


def wait_for(followers, name, expected):
    for one in followers:
        try:
            wait_until(lambda one=one: one.answer(name) == expected, WAIT_SECONDS)
        except TimeoutError:
            raise AssertionError(f"{one.answer(name)}\n{one.log[-6000:]}") from None


def test_secondaries_follow_zones_that_come_change_and_go_untouched(server, followers):
    follow(server, followers)


@pytest.mark.long
def test_the_next_debians_nsd_follows_as_well(server, catalog, tmp_path):
    words = bare.program_of("trixie", "nsd", "usr/sbin/nsd")
    one = Follower("nsd", tmp_path / "nsd", server.places["nsd"], server.ready["dns"], words)
    try:
        follow(server, [one])
    finally:
        one.stop()


def follow(server, followers):
    before = server.make_zone("before.test")
    server.make_record(before, "A", "www", "192.0.2.1")
    wait_for(followers, "www.before.test", ("NOERROR", ["192.0.2.1"]))

    after = server.make_zone("after.test")
    server.make_record(after, "A", "www", "192.0.2.2")
    wait_for(followers, "www.after.test", ("NOERROR", ["192.0.2.2"]))

    server.call("PUT", f"/zones/{after}/secondary_dns/catalog", {"groups": ["signed"]})
    server.call("DELETE", f"/zones/{before}")
    wait_for(followers, "www.before.test", ("REFUSED", []))
    wait_for(followers, "www.after.test", ("NOERROR", ["192.0.2.2"]))

    again = server.make_zone("before.test")
    server.make_record(again, "A", "www", "192.0.2.3")
    wait_for(followers, "www.before.test", ("NOERROR", ["192.0.2.3"]))


def test_what_a_catalog_lists_is_transferred_and_answered_to_nobody(server):
    zone_id = server.make_zone("secret.test")
    server.call("PUT", f"/zones/{zone_id}/secondary_dns/catalog", {"groups": ["first", "other"]})
    path = f"/accounts/{server.ready['account_id']}/secondary_dns/catalog"
    serial = server.call("PUT", path, {"name": CATALOG}).result["serial"]

    member = f"{zone_id}.zones.{CATALOG}"
    assert server.dig(member, "PTR") == server.dig(member, "PTR", tcp=True) == ["NXDOMAIN"]
    assert server.dig(CATALOG, "SOA") == [f"invalid. invalid. {serial} 3600 600 2147483646 0"]
    assert transferred(server) == {
        "@ NS invalid.",
        'version TXT "2"',
        f"{zone_id}.zones PTR secret.test.",
        f'group.{zone_id}.zones TXT "first"',
        f'group.{zone_id}.zones TXT "other"',
    }

    assert server.stop() == 0
    server.start()
    assert server.dig(member, "PTR") == server.dig(member, "PTR", tcp=True) == ["NXDOMAIN"]
    assert f"{zone_id}.zones PTR secret.test." in transferred(server)

    server.call("DELETE", path)
    wait_until(lambda: server.dig(CATALOG, "SOA") == ["REFUSED"], WAIT_SECONDS)


def transferred(server):
    """The catalog's records, SOA apart."""
    host, _, port = server.ready["dns"].rpartition(":")
    zone = dns.zone.from_xfr(dns.query.xfr(host, CATALOG, port=int(port), timeout=WAIT_SECONDS))
    return {
        f"{name} {dns.rdatatype.to_text(rdata.rdtype)} {rdata}"
        for name, _, rdata in zone.iterate_rdatas()
        if rdata.rdtype != dns.rdatatype.SOA
    }
