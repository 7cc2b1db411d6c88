"""Edge processes that run sign with a new key when there is one, and take what the old one has signed, until
credentials are renewed.
"""

import json
import re
import subprocess
import sys
import time

import pytest

from edgestead.edge.tools.clearance import Clearances, Key, Subject
from edgestead.server import credentials
from edgestead.server.edge.challenge_keys import FILE_NAME, KEY_SECONDS
from edgestead.testing.server import environment
from tests.edge.conftest import Site

AGENT = "Browser/1.0"
BROWSER = (f"User-Agent: {AGENT}", "Accept: text/html")
DUE_SECONDS = 8  # behind the making of the file: more than a start takes on a quiet machine
VISITS = 24  # that one of two workers gets none of them has odds of 2^-23
OLD = Key("0ddba115", bytes(range(32)))


@pytest.fixture
def site(tmp_path):
    """Two workers, with a key that is due soon after their start."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    made_s = int(time.time()) + DUE_SECONDS - KEY_SECONDS
    generation = credentials.load_or_make(data).generation
    stored = [{"id": OLD.id, "secret": OLD.secret.hex(), "made_s": made_s, "generation": generation}]
    (data / FILE_NAME).write_text(json.dumps(stored))
    (data / FILE_NAME).chmod(0o600)
    made = Site(tmp_path, "--edge-workers", "2")
    yield made
    made.close()


def test_a_key_changes_while_the_server_runs(site, tmp_path):
    host, _ = site.origin()
    path = f"/zones/{site.zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"
    rules = [{"action": "challenge", "expression": "true"}]
    assert site.server.call("PUT", path, {"rules": rules}).status == 200

    def signing():
        """The key's id in a page of one worker or the other."""
        page = site.get(host, "/", *BROWSER).body
        return re.search(rb"token=([0-9a-f]{8})\.", page)[1].decode()

    first = signing()
    site.server.wait_until(lambda: OLD.id not in {signing() for _ in range(VISITS)}, 180)

    if first == OLD.id:  # else the start took so long that it made the key
        site.server.wait_for_log("clearances are signed with a new key")
    new, kept = json.loads((tmp_path / "data" / FILE_NAME).read_text())
    assert kept["id"] == OLD.id
    assert signing() == new["id"]

    subject = Subject(site.zone_id, "127.0.0.1", AGENT.encode())
    newer = Key(new["id"], bytes.fromhex(new["secret"]))

    def statuses(key, seconds):
        """What both workers say to a clearance of that key and length."""
        cookie = Clearances(lambda: [key]).clearance("challenge", subject, int(time.time()), seconds)
        line = f"Cookie: edge_clearance_challenge={cookie}"
        return {site.get(host, "/", *BROWSER, line).status for _ in range(VISITS)}

    assert statuses(OLD, 1_000) == statuses(newer, 1_000) == {200}
    assert statuses(Key(OLD.id, bytes(32)), 1_000) == statuses(newer, 86_400) == {403}

    renew = ["credentials", "rotate", "--yes", "--data-dir", str(tmp_path / "data")]
    subprocess.run(
        [sys.executable, "-m", "edgestead", *renew],
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=300,
        env=environment(),
    )
    site.server.wait_until(lambda: statuses(OLD, 1_000) == statuses(newer, 1_000) == {403}, 180)
    (only,) = json.loads((tmp_path / "data" / FILE_NAME).read_text())
    assert only["id"] not in {OLD.id, newer.id}
    assert signing() == only["id"]
