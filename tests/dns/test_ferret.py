"""The public Ferret data set of zone files and questions, from a folder given by hand:

    FERRET=<folder with ValidZoneFileTests> ./scripts/test --long tests/dns/test_ferret.py

Each question has the replies of BIND, NSD, Knot and PowerDNS as they were recorded. Ours has to be the reply
of one of them in rcode, AA, answer and authority (NS behind an answer apart, which we leave out). Below a
DNAME that leads to itself or below, each server goes round as often as it likes: questions there may differ,
and are counted apart.
"""

import json
import os
from collections import Counter
from pathlib import Path

import dns.name
import dns.rdata
import pytest

from tests.dns.serving import Asker, said, table_of

FOLDER = os.environ.get("FERRET", "")
SECTIONS = ("ANSWER", "AUTHORITY", "ADDITIONAL")


def recorded(lines):
    """rcode, AA and the sections' records of one reply, in the words of `said`."""
    head, sections, section = {}, {name: set() for name in SECTIONS}, None
    for line in lines:
        word, _, rest = line.partition(" ")
        if line.startswith(";"):
            section = line[1:]
        elif section is None:
            head[word] = rest
        elif section in sections:
            owner, ttl, _, kind, rdata = line.split(None, 4)
            rdata = dns.rdata.from_text("IN", kind, rdata)
            sections[section].add(f"{owner} {ttl} {kind} {rdata}".lower())
    return head["rcode"], "AA" in head["flags"].split(), *(sorted(sections[name]) for name in SECTIONS)


def is_one_of(ours, theirs):
    """Whether a reply is one of those that were recorded."""
    rcode, flags, answer, authority, _ = ours
    for reply in theirs:
        same = (rcode, "AA" in flags, answer) == reply[:3]
        if same and (authority == reply[3] or (answer and not authority)):
            return True
    return False


def goes_round(zone_text, question):
    """Whether a name is below a DNAME that leads to itself or below."""
    name = dns.name.from_text(question)
    lines = [line.split() for line in zone_text.splitlines() if "DNAME" in line.split()]
    redirects = [(dns.name.from_text(words[0]), dns.name.from_text(words[-1])) for words in lines]
    return any(
        name != owner and name.is_subdomain(owner) and target.is_subdomain(owner)
        for owner, target in redirects
    )


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(not FOLDER, reason="FERRET names no folder")
def test_every_question_of_the_data_set(capsys):
    folder, counts, different = Path(FOLDER, "ValidZoneFileTests"), Counter(), []
    for file in sorted((folder / "ZoneFiles").iterdir()):
        text = file.read_text()
        apex = next(line.split()[0] for line in text.splitlines() if "SOA" in line.split())
        ask = Asker(table_of({apex: text}))
        for case in json.loads((folder / "ExpectedResponses" / f"{file.stem}.json").read_text()):
            name, kind = case["Query"]["Name"], case["Query"]["Type"]
            theirs = [
                recorded(one["Response"])
                for one in case["Expected Response"]
                if isinstance(one["Response"], list)
            ]
            if is_one_of(said(ask(name, kind, flags=0, use_edns=False)), theirs):
                counts["equal"] += 1
            elif goes_round(text, name):
                counts["goes round"] += 1
            else:
                different.append((file.name, name, kind))
    with capsys.disabled():
        print(f"\n{dict(counts)}, {len(different)} different")  # noqa: T201

    assert different == []
    assert counts["equal"] > 12_600
