"""A data folder of a release, kept so that every later version opens it.

    .venv/bin/python -m tests.releases.kept     writes tests/releases/<version>.tar.xz

`fill` says what is in it, and test_kept.py reads all of it back. A released folder is never written again.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import edgestead
from edgestead.testing.server import Answer, EdgeServer, environment

HERE = Path(__file__).parent
# A resolver that never answers: no test asks the machine's own one for the parents of signed zones.
FLAGS = ("--objects", str(HERE / "classes.py"), "--resolver", "127.0.0.1:9")
NOT_KEPT = {"rules", "lock"}  # compiled patterns are one processor's, and the lock is one process's
ZONE = "kept.test"
RECORDS = [
    ("A", "www", "192.0.2.1"),
    ("AAAA", "www", "2001:db8::1"),
    ("CNAME", "alias", "www.kept.test"),
    ("MX", "@", "mail.kept.test"),
    ("TXT", "@", "v=spf1 -all"),
    ("CAA", "@", '0 issue "ca.example"'),
    ("SRV", "_sip._tcp", "10 5 5060 sip.kept.test"),
    ("NS", "below", "ns.elsewhere.test"),
]
VALUES = {"small": "a value", "large": "v" * 400_000}
ENTRIES = ("first", "second", "third")
ALARM_MS = 4_102_444_800_000  # 2100-01-01: set, and not due
BANNED = "192.0.2.66"
KEY_NAME = "transfer.kept.test."
MEMBER = "ann@kept.test"
SIGNED = "signed.test"
RULE = {"action": "block", "expression": 'http.request.uri.path eq "/private"', "description": "kept"}


def edgecli(*words: str, **more: str) -> str:
    """What a command printed; `more` are variables of its environment. Raises CalledProcessError."""
    command = [sys.executable, "-P", "-m", "edgestead", *words]
    variables = environment() | more
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=120, env=variables
    ).stdout


def done(answer: Answer) -> None:
    assert answer.status == 200, answer


def fill(server: EdgeServer) -> dict[str, str]:
    """Write everything; gives what only the running server knows: ids, and a bookmark of each object."""
    zone_id = server.make_zone(ZONE)
    for type_, name, content in RECORDS:
        more = {"priority": 10} if type_ in ("MX", "SRV") else {}
        assert server.make_record(zone_id, type_, name, content, **more).status == 200, (type_, name)
    done(server.call("PATCH", f"/zones/{zone_id}/settings/always_use_https", {"value": "on"}))
    entry_point = f"/zones/{zone_id}/rulesets/phases/http_request_firewall_custom/entrypoint"
    done(server.call("PUT", entry_point, {"rules": [RULE]}))
    account = server.ready["account_id"]
    spaces = f"/accounts/{account}/storage/kv/namespaces"
    space = server.call("POST", spaces, {"title": "kept"}).result["id"]
    body = [{"key": key, "value": value, "metadata": {"of": key}} for key, value in VALUES.items()]
    done(server.call("PUT", f"{spaces}/{space}/bulk", body))
    known = {"zone": zone_id, "account": account, "namespace": space}
    for kind in ("Ledger", "Journal"):
        for text in ENTRIES[:2]:
            done(server.call_object(f"{kind}/one/enter", text))
        known[kind] = server.call_object(f"{kind}/one/bookmark").result
        done(server.call_object(f"{kind}/one/enter", ENTRIES[2]))
        done(server.call_object(f"{kind}/one/wake", ALARM_MS))
    return known | fill_since_0_2(server)


def fill_since_0_2(server: EdgeServer) -> dict[str, str]:
    """What 0.1.0 did not have: sealed keys, and who may do what."""
    account, zone_id = f"/accounts/{server.ready['account_id']}", server.make_zone(SIGNED)
    assert server.make_record(zone_id, "A", "www", "192.0.2.2").status == 200
    ds = server.call("PATCH", f"/zones/{zone_id}/dnssec", {"status": "active"}).result["ds"]
    key = server.call("POST", f"{account}/secondary_dns/tsigs", {"name": KEY_NAME}).result
    banned = {"mode": "block", "configuration": {"target": "ip", "value": BANNED}}
    done(server.call("POST", f"/zones/{zone_id}/firewall/access_rules/rules", banned))
    groups = {one["name"]: one["id"] for one in server.call("GET", "/user/tokens/permission_groups").result}
    roles = {one["name"]: one["id"] for one in server.call("GET", f"{account}/roles").result}
    done(server.call("POST", f"{account}/members", {"email": MEMBER, "roles": [roles["DNS"]]}))
    policy = {
        "effect": "allow",
        "permission_groups": [{"id": groups["DNS Read"]}],
        "resources": {f"com.cloudflare.api.account.zone.{zone_id}": "*"},
    }
    reader = server.call("POST", "/user/tokens", {"name": "reader", "policies": [policy]}).result["value"]
    return {"signed": zone_id, "ds": ds, "tsig": key["id"], "secret": key["secret"], "reader": reader}


def pack(folder: Path, archive: Path) -> None:
    """Without what belongs to one machine. Times and owners are left out, so that only contents differ."""

    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        kept = Path(member.name).parts[:2][-1] not in NOT_KEPT
        return member if kept and (member.isfile() or member.isdir()) else None

    with tarfile.open(archive, "w:xz") as packed:
        packed.add(folder, "data", filter=anonymous)


def main() -> None:
    archive = HERE / f"{edgestead.__version__}.tar.xz"
    if archive.exists():
        raise SystemExit(f"{archive.name} is there: a released folder is never written again")
    with tempfile.TemporaryDirectory() as made:
        server = EdgeServer(Path(made) / "data", *FLAGS)
        try:
            known = fill(server.start())
            assert server.stop() == 0
        finally:
            server.close()
        (Path(made) / "data" / "known.json").write_text(json.dumps(known, indent=1))
        pack(Path(made) / "data", archive)


if __name__ == "__main__":
    main()
