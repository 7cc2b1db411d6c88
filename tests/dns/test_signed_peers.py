"""Stock programs judge a signed zone amid a roll: delv and drill its answers, Knot and BIND all of it."""

import shutil
import subprocess

import pytest

from tests.dns.signed import compare_denials, missing_verifiers, zone_text
from tests.dns.test_signed import APEX, Changing, is_pending, wire_of
from tests.dns.test_signed_live import SignedPrimary, delv

QUESTIONS = (  # name below the apex, type, and whether it is there
    ("", "SOA", True),
    ("", "DNSKEY", True),
    ("", "MX", False),
    ("host.", "A", True),
    ("host.", "TXT", False),
    ("edge.", "AAAA", True),
    ("any.wild.", "TXT", True),
    ("any.wild.", "A", False),
    ("nowhere.", "A", False),
    ("empty.", "A", False),
)
SECONDS_MAX = 180
PATH = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
KNOT_CONFIG = """
server:
    rundir: "{folder}"
database:
    storage: "{folder}"
zone:
  - domain: "{apex}"
    storage: "{folder}"
    file: "zone"
    semantic-checks: on
    dnssec-validation: on
"""
needs = {
    program: pytest.mark.skipif(
        not shutil.which(program, path=PATH), reason=f"{program} IS NOT INSTALLED: apt-get install {package}"
    )
    for program, package in (
        ("delv", "bind9-dnsutils"),
        ("drill", "ldnsutils"),
        ("knotc", "knot"),
        ("named-checkzone", "bind9-utils"),
    )
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A zone whose key is being replaced: two sign the keys, one the rest."""
    made = Changing(tmp_path_factory.mktemp("world"), 79)
    signed = made.signed
    signed.add(APEX, "host", "A", "192.0.2.1")
    signed.add(APEX, "edge", "A", "192.0.2.1", proxied=True)
    signed.add(APEX, "*.wild", "TXT", '"any"')
    signed.add(APEX, "below.empty", "A", "192.0.2.2")
    signed.set(APEX, "active")
    signed.anchor = signed.shown(APEX)
    signed.before_roll = zone_text(signed.table, APEX + ".")
    assert signed.api.post(f"/zones/{signed.ids[APEX]}/dnssec/roll", {}).status == 200
    signed.take()
    yield made
    signed.close()


@pytest.fixture(scope="module")
def primary(world):
    with SignedPrimary(world).running() as running:
        yield running


@pytest.fixture
def text(world):
    assert not is_pending(world.signed.table.view.zones[wire_of(APEX)])
    return zone_text(world.signed.table, APEX + ".")


def run(program, *arguments):
    command = [shutil.which(program, path=PATH), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)


@needs["delv"]
@pytest.mark.parametrize(("name", "kind", "is_there"), QUESTIONS)
def test_delv_believes(world, primary, tmp_path, name, kind, is_there):
    said = delv(tmp_path, world.signed.anchor["ds"], primary.port, name + APEX, kind)

    assert said.startswith("; fully validated" if is_there else "; negative response, fully"), said


@needs["drill"]
@pytest.mark.parametrize(("name", "kind", "is_there"), QUESTIONS)
def test_drill_finds_its_way_to_the_key(world, primary, tmp_path, name, kind, is_there):
    if name == "empty.":
        pytest.skip("ldns wants a wildcard denied beside a name that exists (not RFC 4035 §5.4)")
    key = tmp_path / "key"
    key.write_text(f"{APEX}. 3600 IN DNSKEY 257 3 13 {world.signed.anchor['public_key']}\n")
    place = ("-k", str(key), "-p", str(primary.port), "@127.0.0.1")
    said = run("drill", "-D", "-S", *place, name + APEX, kind)

    assert "Chase successful" in said.stdout, said
    assert ("Existence denied" not in said.stdout) is is_there or name == "any.wild.", said


@needs["named-checkzone"]
def test_bind_would_load_it(text, tmp_path):
    file = tmp_path / "zone"
    file.write_text(text)
    said = run("named-checkzone", "-i", "none", "-k", "fail", APEX, str(file))

    assert said.returncode == 0, said
    assert "DNSSEC signed" in said.stdout


@needs["knotc"]
@pytest.mark.parametrize("is_whole", [True, False])
def test_knot_validates_all_of_it(world, tmp_path, is_whole):
    """With one key: of two, knotc 3.2 denies a signature that BIND, ldns and itself before the roll take. The
    zone amid the roll is held against Knot's own signing of it, below.
    """
    text = world.signed.before_roll
    (tmp_path / "zone").write_text(text if is_whole else text.replace("192.0.2.2", "192.0.2.3"))
    config = tmp_path / "config"
    config.write_text(KNOT_CONFIG.format(folder=tmp_path, apex=APEX))
    said = run("knotc", "-c", str(config), "zone-check", APEX)

    assert (said.returncode, said.stdout) == (0, "")
    assert ("no valid signature" in said.stderr) is not is_whole, said
    assert is_whole is not bool(said.stderr), said


def test_denials_amid_a_roll_mean_what_others_sign(text, tmp_path):
    compare_denials(text, APEX + ".", tmp_path)
    if missing_verifiers():
        pytest.skip(f"NOT SIGNED BY {missing_verifiers()}: apt-get install bind9-utils knot-dnssecutils")
