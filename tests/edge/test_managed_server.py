"""The managed ruleset in a running server: deployed, enforced, told, ready."""

import itertools

import pytest

from edgestead.crs import ANOMALY_RULE_ID, RULESET_ID
from tests.edge.conftest import Site
from tests.edge.talk import connected, get, read_answer

PHASE = "http_request_firewall_managed"
RULES = r"""
SecRule ARGS|REQUEST_HEADERS:User-Agent "@rx (?i)union\s+select" "id:942001,phase:2,block,t:none,\
    t:urlDecodeUni,msg:'SQL words',severity:CRITICAL,tag:'paranoia-level/1',\
    setvar:'tx.inbound_anomaly_score_pl1=+%{tx.critical_anomaly_score}'"
SecRule ARGS "@contains quote" "id:942002,phase:2,block,t:none,msg:'Quotes',severity:WARNING,\
    tag:'paranoia-level/2',setvar:'tx.inbound_anomaly_score_pl2=+%{tx.warning_anomaly_score}'"
"""
ATTACK = "/?id=1+union+select+2"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("managed")
    (folder / "crs" / "rules").mkdir(parents=True)
    (folder / "crs" / "crs-setup.conf").write_text('SecComponentSignature "OWASP_CRS/4.0.0"\n')
    (folder / "crs" / "rules" / "one.conf").write_text(RULES)
    made = Site(folder, "--crs", str(folder / "crs"))
    yield made
    made.close()


def deployed(site, threshold=5, **overrides):
    """The zone executes the managed ruleset, and the edge is ready to; a host that is proxied."""
    own = {"id": ANOMALY_RULE_ID, "score_threshold": threshold, **overrides}
    parameters = {"id": RULESET_ID, "overrides": {"rules": [own]}}
    rules = [{"action": "execute", "expression": "true", "action_parameters": parameters}]
    path = f"/zones/{site.zone_id}/rulesets/phases/{PHASE}/entrypoint"
    assert site.server.call("PUT", path, {"rules": rules}).status == 200
    host, origin = site.origin()
    site.server.wait_until(lambda: site.get(host).status == 200, 180)
    return host, origin


def events(site, **members):
    found = site.server.call("GET", f"/zones/{site.zone_id}/security/events?per_page=100").result
    return [one for one in found if all(one[name] == value for name, value in members.items())]


def test_an_attack_is_stopped_before_the_origin_and_told(site):
    host, origin = deployed(site)
    before = len(origin.heads)

    assert site.get(host, ATTACK).status == 403
    assert site.get(host, "/?id=1").status == 200
    assert len(origin.heads) == before + 1
    site.server.wait_until(lambda: events(site, host=host, action="block"), 180)
    (event,) = events(site, host=host, action="block")
    assert (event["phase"], event["rule_id"], event["status"]) == (PHASE, ANOMALY_RULE_ID, 403)
    assert (event["score"], event["threshold"]) == (5, 5)
    (contribution,) = event["contributions"]
    assert (contribution["variable"], contribution["score"]) == ("ARGS:id", 5)
    for verdict in ("block", "pass"):
        line = f'edge_waf_verdicts_total{{process="edge-0",verdict="{verdict}"}} 0\n'
        site.server.wait_until(lambda line=line: line not in site.server.call("GET", "//metrics").body, 180)


def test_another_threshold_holds_as_soon_as_the_api_has_answered(site):
    host, _ = deployed(site, 6)
    assert site.get(host, ATTACK).status == 200
    assert site.get(host, ATTACK + "&a=quote").status == 403

    deployed(site, 5)

    assert site.get(host, ATTACK).status == 403


def test_bodies_are_inspected_whole_or_refused(site):
    host, _ = deployed(site)
    for kind, body, status in (
        ("application/x-www-form-urlencoded", b"a=1+union+select", 403),
        ("application/json", b'{"a": "union select"}', 403),
        ("application/json", b'{"a": "fine"}', 200),
        ("application/json", b'{"a": ', 400),
        ("application/x-www-form-urlencoded", b"a=" + b"b" * 200_000, 413),
        ("application/x-www-form-urlencoded", b"a=" + b"b" * 131_070, 200),
        ("application/octet-stream", b"b" * 400_000, 200),
    ):
        assert (kind, body[:20], posted(site, host, kind, body)) == (kind, body[:20], status)


def posted(site, host, kind, body):
    head = f"POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    with connected(site.http) as connection:
        try:
            connection.sendall(head.encode() + body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # answered before all was sent
        with connection.makefile("rb") as stream:
            return read_answer(stream).status


def test_what_was_deployed_and_is_no_longer_there_is_never_left_out(site, tmp_path):
    host, origin = deployed(site)
    before = len(origin.heads)
    config = tmp_path / "edge.toml"
    config.write_text(f'managed-ruleset-id = "{"f" * 32}"\n')
    flags = site.server.flags
    site.server.stop()
    site.server.flags = (*flags, "--config", str(config))
    try:
        site.server.start()
        site.server.wait_until(lambda: site.get(host).status == 503, 180)
        site.server.wait_until(lambda: _health(site) == 503, 180)

        assert len(origin.heads) == before
        site.server.wait_until(lambda: events(site, host=host, action="refuse"), 180)
        assert "no such managed ruleset" in events(site, host=host, action="refuse")[0]["reason"]
    finally:
        site.server.stop()
        site.server.flags = flags
        site.server.start()
    site.server.wait_until(lambda: site.get(host).status == 200, 180)
    site.server.wait_until(lambda: _health(site) == 200, 180)
    assert site.get(host, ATTACK).status == 403


def _health(site):
    address = site.server.ready["api_base"].removeprefix("http://").partition("/")[0]
    return get(address, address, "/health/ready").status


def wait_for_patterns(site):
    folder = site.server.data_dir / "rules"
    site.server.wait_until(lambda: list(folder.glob("*.patterns")), 120)
    return folder


def test_patterns_are_compiled_once_and_kept_privately(site):
    deployed(site)
    folder = wait_for_patterns(site)

    assert folder.stat().st_mode & 0o777 == 0o700
    (kept,) = folder.glob("*.patterns")
    made = kept.stat().st_mtime_ns
    site.server.stop()
    site.server.start()
    host, _ = deployed(site)
    assert site.get(host, ATTACK).status == 403
    assert kept.stat().st_mtime_ns == made


TYPE = "multipart/form-data; boundary=XyZ"


def part(name, content, filename=""):
    shown = f'; filename="{filename}"' if filename else ""
    return (
        f'--XyZ\r\nContent-Disposition: form-data; name="{name}"{shown}\r\n\r\n'.encode() + content + b"\r\n"
    )


UPLOADS = [
    (part("f", b"\0\n" * 300_000, "a.bin") + part("note", b"fine") + b"--XyZ--\r\n", 200),
    (part("f", b"\0\n" * 300_000, "a.bin") + part("note", b"union select") + b"--XyZ--\r\n", 403),
    (part("note", b"union select") + part("f", b"\0\n" * 300_000, "a.bin") + b"--XyZ--\r\n", 403),
    (part("f", b"\0\n" * 300_000, "a.bin") + part("note", b"y" * 200_000) + b"--XyZ--\r\n", 413),
    (part("f", b"\0\n" * 300_000, "a.bin") + b"--XyZ\r\n\r\n" * 2 + b"--XyZ--\r\n", 400),
    (part("f", b"\0\n" * 300_000, "a.bin"), 400),
]


SLOW = b"%41b'\\x<!--" * 10_000  # takes longer than one request may keep the others waiting
UPLOADS += [
    (UPLOADS[0][0].replace(b"--XyZ--", b"".join(part(f"n{n}", SLOW) for n in range(8)) + end), status)
    for end, status in (
        (b"--XyZ--", 200),
        (part("z", b"union select") + b"--XyZ--", 403),
        (b"--XyZ--\r\n--XyZ--", 400),
        (b"", 400),
    )
]


@pytest.mark.parametrize(("body", "status"), UPLOADS, ids=[str(number) for number in range(len(UPLOADS))])
def test_a_large_upload_passes_and_fields_behind_the_file_are_inspected(site, body, status):
    host, origin = deployed(site)

    assert posted(site, host, TYPE, body) == status
    if status == 200:
        assert origin.requests[-1][1] == body


def test_the_parts_of_an_upload_make_one_score(site):
    """5 before the file and 3 behind it: neither alone reaches 8, and the same rule twice stays 5."""
    host, _ = deployed(site, 8)
    attack, quote, file = (
        part("a", b"union select"),
        part("b", b"quote"),
        part("f", b"\0\n" * 300_000, "a.bin"),
    )
    for parts, status in (
        ([attack, file, quote], 403),
        ([file, attack, file, quote], 403),
        ([quote, file, attack], 403),
        ([attack, file, attack], 200),
        ([file, quote, file, quote], 200),
        ([attack, file], 200),
    ):
        body = b"".join(parts) + b"--XyZ--\r\n"
        assert (status, posted(site, host, TYPE, body)) == (status, status)
