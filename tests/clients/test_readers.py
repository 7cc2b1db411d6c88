"""Families of clients write and read every row of the table of spellings, by their own encoders and types.

What a client decodes is what the table says: a member that the table answers as it was sent makes no
difference to it, at no look.
"""

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.test_clients import installer
from tests.clients.test_octodns import NOTHING, OctoDns
from tests.sent_and_answered import cases

READERS = Path(__file__).parent / "readers"
SECONDS_MAX = 120  # of a busy machine; alone a reader takes three

# TXT as it is sent, and octoDNS's value of it, in which a semicolon has a backslash.
TEXTS = {
    "v=DKIM1; p=" + "A" * 400: "v=DKIM1\\; p=" + "A" * 400,
    'say \\"hi\\"': 'say "hi"',
    "back\\\\slash\\059": "back\\slash\\;",
}


class Reader(NamedTuple):
    """A program of readers/, and the client (tests/clients/install.py) whose environment it runs in."""

    program: str
    client: str
    command: tuple[str, ...]
    folder: str = ""  # of npm


PYTHON_5 = str(installer.HOME / "venvs" / "cfsdk" / "bin" / "python")
FAMILIES = [
    Reader("python_5.py", "py_sdk_dns", (PYTHON_5,)),
    Reader("python_2.py", "cf2_lib", (str(installer.HOME / "venvs" / "cf2" / "bin" / "python"),)),
    Reader("node_7.js", "node_sdk_rulesets", ("node",), "sdk"),
]
SETTINGS = Reader("python_5_settings.py", "py_sdk_dns", (PYTHON_5,))
# Ours, and those that the SDK has dropped or never had: it knows no id beside its own.
UNKNOWN_TO_IT = {
    *(
        "acme_validation",
        "ambiguous_paths",
        "compression",
        "fonts",
        "log_to_cloudflare",
        "long_lived_grpc",
        "origin_h2c",
        "pq_keyex",
        "visitor_ip",
        "waf_arguments",
        "waf_body_bytes",
        "waf_body_rest",
        "waf_packed_bodies",
    ),
}


@pytest.mark.parametrize("reader", FAMILIES, ids=lambda one: one.program)
def test_a_client_reads_what_the_table_says_of_each_spelling(reader, clients_server):
    installer.install(reader.client)
    server = clients_server.server
    zone = f"{reader.program.partition('.')[0].replace('_', '')}.example"
    rows = tuple(cases(zone))

    answers = read(reader, server, server.make_zone(zone), bodies=[row.sent for row in rows])

    assert len(answers) == len(rows)
    for row, (made, *others) in zip(rows, answers, strict=True):
        assert others == [made, made], row.sent
        assert {member: made.get(member) for member in row.clients} == row.clients


def test_our_octodns_provider_writes_every_spelling_so_that_nothing_is_left_to_plan(clients_server, tmp_path):
    octodns = OctoDns(tmp_path, clients_server, "spelt.example")
    zone_id = octodns.server.make_zone(octodns.zone)
    rows = [case.sent for case in cases(octodns.zone)]
    rows += [{"type": "TXT", "name": f"text{n}", "content": text} for n, text in enumerate(TEXTS)]
    for row in rows:
        assert octodns.server.call("POST", f"/zones/{zone_id}/dns_records", row).status == 200

    dumped = octodns.dump()
    for name in dumped:  # some stand at names that octoDNS refuses for their type
        for record in dumped[name] if isinstance(dumped[name], list) else [dumped[name]]:
            record.setdefault("octodns", {})["lenient"] = True
    octodns.write(dumped)

    assert [dumped[f"text{n}"]["value"] for n in range(len(TEXTS))] == list(TEXTS.values())
    assert octodns.plan() == NOTHING
    (tmp_path / "again").mkdir()
    again = OctoDns(tmp_path / "again", clients_server, "again.example")
    again.sync(dumped)
    assert again.plan() == NOTHING


def test_the_types_of_the_python_sdk_take_every_setting_that_it_knows(clients_server):
    installer.install(SETTINGS.client)
    server = clients_server.server
    zone_id = server.make_zone("settings.example")
    ids = [one["id"] for one in server.call("GET", f"/zones/{zone_id}/settings").result]

    refused = read(SETTINGS, server, zone_id, ids=ids)

    assert len(ids) > len(UNKNOWN_TO_IT)
    assert set(refused) == UNKNOWN_TO_IT


def read(reader, server, zone_id, **more):
    """What the program prints of a zone. For records: each as the client has it after writing it, after
    reading it, and in the list.
    """
    asked = {
        "base": server.ready["api_base"],
        "token": server.ready["api_token"],
        "zone_id": zone_id,
        **more,
    }
    done = subprocess.run(
        [*reader.command, READERS / reader.program],
        input=json.dumps(asked),
        env=installer.environment(reader.client)
        | {"NODE_PATH": str(installer.HOME / "npm" / reader.folder / "node_modules")},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout)
