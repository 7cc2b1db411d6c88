"""A release's own regression tests as requests on a socket, through the edge of a running server.

`EDGESTEAD_TEST_CRS` names the folder of a release with its tests. The zone logs at the highest level and the
lowest threshold; what matched is read from the events. The tests that fail are listed, each with its reason;
any other that fails is an error.
"""

import json
import re
import socket
import sys

import pytest

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID
from edgestead.model import events
from tests.edge.conftest import Site
from tests.edge.talk import read_answer
from tests.waf.regression import ALL_TESTS, FOLDERS, SETTINGS, cases

PHASE = "http_request_firewall_managed"
FAILURES_MAX = 40  # what a release may fail and still count as enforced
ANSWER_SECONDS_MAX = 20
PATTERNS_SECONDS_MAX = 1_200
NAME = re.compile(rb"(?:[a-z-]+\.)+[a-z]+")
ZONE = "localhost.example"  # what the tests' "localhost" becomes: a zone's name has two labels
_HEAD = "the edge refuses such a request itself, with 400 and an event, before any rule: "
_METHOD = _HEAD + "a method that is none of HTTP's"
_TARGET = _HEAD + "bytes beyond ASCII in the target"
_NO_ZONE = "a Host that is proxied for nobody gets 530 and an event: there is no zone whose rules could run"
_NAME = "the test means the host's name to be localhost in the request too, and no zone can be called that"
KNOWN = {
    **dict.fromkeys(("911100-5", "911100-7", "920100-10", "920100-14", "949110-4"), _METHOD),
    **dict.fromkeys(("934120-23", "934120-24", "934120-25", "934120-26", "934120-39"), _TARGET),
    **dict.fromkeys(("920280-1", "920290-4"), _HEAD + "no Host"),
    **dict.fromkeys(("920350-4", "920350-5", "920350-6"), _HEAD + "a Host in brackets"),
    **dict.fromkeys(("920350-1", "920350-3", "980170-1", "980170-2"), _NO_ZONE),
    **dict.fromkeys(("920100-16", "943110-4"), _NAME),
    "920400-1": "says that a body follows and sends none: the edge waits for it",
    "920430-5": "refused with 505 before any rule: the request has no version",
    "920430-8": _HEAD + "a version that is none",
    "920620-1": "expects a server in front that joins two headers of one name",
    "934210-13": "wants REQUEST_BODY of JSON, or an array's argument without the place in its name",
}


class Proxy:
    """A server that executes the release's rules and logs, and a connection for each request."""

    def __init__(self, folder, release):
        config = folder / "edge.toml"
        config.write_text("managed-response-bytes = 524288\n")
        rules = str(settled(folder / "crs", release))
        self.site = Site(folder, "--crs", rules, "--config", str(config), zone=ZONE)
        self.site.first.answer = reflected
        self.hosts = {b"localhost": self.site.name(self.site.first.host).encode()}
        self._zones = {ZONE}
        self._enforce(self.site.zone_id)
        self.site.server.wait_until(
            lambda: list((self.site.server.data_dir / "rules").glob("*.patterns")), PATTERNS_SECONDS_MAX
        )

    def serve(self, host):
        """Proxy a name of the tests, in a zone of its own last two labels."""
        name = host.decode("latin-1")
        zone = ".".join(name.split(".")[-2:])
        if zone not in self._zones:
            self._zones.add(zone)
            self._enforce(self.site.server.make_zone(zone))
        zone_id = self.site.server.call("GET", f"/zones?name={zone}").result[0]["id"]
        made = self.site.server.make_record(zone_id, "A", name, self.site.first.host, proxied=True)
        assert made.status == 200, made
        self.hosts[host] = host

    def _enforce(self, zone_id):
        own = {"id": ANOMALY_RULE_ID, "score_threshold": 1, "action": "log"}
        rule = {
            "action": "execute",
            "expression": "true",
            "action_parameters": {"id": RULESET_ID, "overrides": {"rules": [own]}},
        }
        path = f"/zones/{zone_id}/rulesets/phases/{PHASE}/entrypoint"
        assert self.site.server.call("PUT", path, {"rules": [rule]}).status == 200

    def send(self, sent):
        """(ray, status) of the answer; of none, nothing and 0."""
        host, _, port = self.site.http.rpartition(":")
        method = sent.partition(b" ")[0].decode("latin-1")
        with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS_MAX) as connection:
            try:
                connection.sendall(sent)
                with connection.makefile("rb") as stream:
                    answer = read_answer(stream, method=method)
            except OSError:
                answer = None
        return (answer.headers[b"edge-ray"].decode(), answer.status) if answer else ("", 0)

    def matched(self):
        """Numbers of the rules that matched, by ray. Ends the server, so that all events are written."""
        self.site.server.stop()
        found, dropped = {}, 0
        for path in sorted((self.site.server.data_dir / "events").glob(f"*{events.SUFFIX}")):
            for line in path.read_bytes().splitlines():
                event = events.decode(line)
                dropped += event.dropped
                ids = {number(event.description)} | {number(one.description) for one in event.contributions}
                found.setdefault(event.ray_id, set()).update(ids - {0})
        assert dropped == 0
        return found


def reflected(head, body, connection):
    """What an origin of these tests answers: to /reflect what it is told to."""
    told = json.loads(body) if re.match(rb"[A-Z]+ /reflect[ ?]", head) and body[:1] == b"{" else {}
    content = told.get("body", "").encode()
    lines = [f"HTTP/1.1 {told.get('status', 200)} As told", f"content-length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in told.get("headers", {}).items()]
    if head.startswith(b"HEAD "):
        content = b""
    return "\r\n".join([*lines, "", ""]).encode() + content


def number(description):
    words = description.partition(":")[0]
    return int(words) if words.isdigit() else 0


def settled(folder, release):
    """The release's rules, with the settings under which its tests are meant to run."""
    (folder / "rules").mkdir(parents=True)
    for path in (release / "rules").iterdir():
        if path.suffix in (".conf", ".data"):
            (folder / "rules" / path.name).write_bytes(path.read_bytes())
    changes = ",".join(f"setvar:tx.{key.decode()}={value.decode()}" for key, value in SETTINGS.items())
    setup = (release / "crs-setup.conf.example").read_text()
    (folder / "crs-setup.conf").write_text(f'{setup}\nSecAction "id:900999,phase:1,pass,nolog,{changes}"\n')
    return folder


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name)
def proxy(request, tmp_path):
    made = Proxy(tmp_path, request.param)
    yield request.param, made
    made.site.close()


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_a_release_passes_its_own_tests_through_the_proxy(proxy):
    pytest.importorskip("yaml")
    release, edge = proxy
    sent = []
    for case in cases(release, ALL_TESTS):
        if NAME.fullmatch(case.host) and case.host not in edge.hosts:
            edge.serve(case.host)
        sent.append((case, *edge.send(case.on_wire(edge.hosts))))
    matched = edge.matched()

    failures = {}
    for case, ray, status in sent:
        if failure := case.failure(matched.get(ray, set()), status):
            failures[case.name] = f"{failure}, status {status}"
    lines = [
        f"{len(sent)} tests, {len(failures)} fail",
        *(f"{name}: {why}" for name, why in failures.items()),
    ]
    sys.stdout.write("\n".join([*lines, ""]))
    assert len(sent) > 1_000
    assert len(KNOWN) <= FAILURES_MAX
    assert {name: failure for name, failure in failures.items() if name not in KNOWN} == {}
