"""Every difference between our answers and those of NSD, Knot and BIND, as a rule with its reason.

A rule takes what differs for this reason out of a pair of replies; what is left must be equal. Each rule's
title is a line of docs/differences.md, under "DNS answers beside other servers".
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.dns.facts import AA, ANY, CD, CNAME, NS, SOA, TC, Facts

SERVFAIL, NXDOMAIN, REFUSED, BADVERS = 2, 3, 5, 16
ADDRESSES = (1, 28)
RRSIG, NSEC = 46, 47
DS = 43
SPARE_OCTETS = 40
LEADING = (NS, 15, 33, 64, 65)
EXTENDED_ERROR = 15
Z = 0x0040


class Asked(NamedTuple):
    """A question; the apexes of all zones that are served and their names; the octets that our reply left."""

    name: str
    kind: int
    apexes: tuple
    owners: frozenset
    spare: int

    def zone_of(self, name):
        return max((apex for apex in self.apexes if ("." + name).endswith("." + apex)), key=len, default=None)


Rule = Callable[[Asked, Facts, Facts], tuple[Facts, Facts]]


def records_of_a_truncated_reply(asked, ours, theirs):
    if not ours.flags & theirs.flags & TC:
        return ours, theirs
    return tuple(reply._replace(answer=(), authority=(), additional=()) for reply in (ours, theirs))


def cd_and_z_that_come_back(asked, ours, theirs):
    return ours, theirs._replace(flags=theirs.flags & ~(CD | Z) | ours.flags & (CD | Z))


def do_of_an_error(asked, ours, theirs):
    if ours.rcode not in (REFUSED, BADVERS) or not (ours.opt and theirs.opt):
        return ours, theirs
    return ours, theirs._replace(opt=theirs.opt._replace(do=ours.opt.do))


def the_reason_of_a_refusal(asked, ours, theirs):
    if ours.rcode != REFUSED or not ours.opt:
        return ours, theirs
    return ours._replace(opt=ours.opt._replace(options=ours.opt.options - {EXTENDED_ERROR})), theirs


def aliases_into_other_zones(asked, ours, theirs):
    """They stop where the alias leaves the zone."""
    name, home, chain = asked.name, asked.zone_of(asked.name), []
    if theirs.rcode not in (0, NXDOMAIN) or asked.kind == CNAME:
        return ours, theirs
    while asked.zone_of(name) == home:
        alias = [record for record in ours.answer if record[0] == name and record[1] == CNAME]
        if not alias or alias[0] in chain:
            return ours, theirs
        chain += alias
        name = alias[0][4].decode("latin-1")
    if ("." + name).endswith("." + home):  # Knot goes on in the zone of the alias, though another is closer
        return (ours, ours) if set(chain) <= set(theirs.answer) else (ours, theirs)
    left = set(theirs.answer) - set(ours.answer)
    soa_or_none = all(record[1] == SOA and record[0] == home for record in theirs.authority)
    if left or not set(chain) <= set(theirs.answer) or not soa_or_none:
        return ours, theirs
    return ours, ours._replace(flags=ours.flags | theirs.flags & ~AA)


def signatures_of_an_alias(asked, ours, theirs):
    alias = any(record[1] == CNAME for record in ours.answer)
    if asked.kind not in (RRSIG, NSEC) or not alias or theirs.rcode not in (0, NXDOMAIN):
        return ours, theirs
    if set(theirs.answer) - set(ours.answer):
        return ours, theirs
    return ours, ours


def addresses_beside_a_referral(asked, ours, theirs):
    """Those of names that are not below the cut."""
    cuts = [record[0] for record in ours.authority if record[1] == NS]
    if not cuts or ours.authority != theirs.authority:
        return ours, theirs

    def needed(reply):
        return tuple(r for r in reply.additional if r[1] not in ADDRESSES or r[0].endswith(cuts[0]))

    return ours._replace(additional=needed(ours)), theirs._replace(additional=needed(theirs))


def addresses_behind_an_answer(asked, ours, theirs):
    """Of the names that the records of an answer lead to."""
    leading = [record for record in ours.answer + theirs.answer if record[1] in LEADING]
    if not leading or any(record[1] not in ADDRESSES for record in ours.additional + theirs.additional):
        return ours, theirs
    return ours._replace(additional=()), theirs._replace(additional=())


def ds_of_a_zone_that_is_not_delegated(asked, ours, theirs):
    """Its parent is here too, and has no NS records for it: they see no name there, or an asterisk's."""
    ends = asked.name
    if asked.kind == CNAME or not ours.authority or ours.rcode:
        return ours, theirs
    for record in ours.answer:
        if record[1] == CNAME and record[4].decode("latin-1") in asked.apexes:
            ends = record[4].decode("latin-1")
    if asked.kind != DS or ends not in asked.apexes or ours.authority[0][1] != SOA:
        return ours, theirs
    if theirs.rcode == NXDOMAIN and ours.authority == theirs.authority:
        return ours, theirs._replace(rcode=0)
    return (ours, ours) if theirs.answer and theirs.answer[0][0] == ends else (ours, theirs)


def a_ring_of_aliases(asked, ours, theirs):
    owners = {record[0] for record in ours.answer}
    ring = any(record[1] == CNAME and record[4].decode("latin-1") in owners for record in ours.answer)
    if not ring or theirs.rcode != SERVFAIL or ours.rcode or ours.answer != theirs.answer:
        return ours, theirs
    return ours, ours


def glue_from_an_asterisk(asked, ours, theirs):
    cuts = [record[0] for record in ours.authority if record[1] == NS]
    if not cuts:
        return ours, theirs
    written = tuple(r for r in theirs.additional if r[0] in asked.owners or not r[0].endswith(cuts[0]))
    return ours, theirs._replace(additional=written)


def truncated_early(asked, ours, theirs):
    """BIND keeps some octets free."""
    if theirs.flags & TC and not ours.flags & TC and asked.spare <= SPARE_OCTETS:
        return ours, ours
    return ours, theirs


def any_is_one_rrset(asked, ours, theirs):
    if asked.kind != ANY or not ours.answer:
        return ours, theirs
    if theirs.flags & TC:  # it chose a larger one
        return ours, ours
    kinds = {record[:2] for record in ours.answer}
    if len(kinds) != 1 or {record[0] for record in theirs.answer} != {record[0] for record in ours.answer}:
        return ours, theirs
    return ours._replace(answer=(), additional=()), theirs._replace(answer=(), additional=())


RULES: dict[str, Rule] = {
    "records of a truncated reply": records_of_a_truncated_reply,
    "CD and Z that come back": cd_and_z_that_come_back,
    "DO of an error": do_of_an_error,
    "the reason of a refusal": the_reason_of_a_refusal,
    "aliases into other zones": aliases_into_other_zones,
    "signatures of an alias": signatures_of_an_alias,
    "glue from an asterisk": glue_from_an_asterisk,
    "addresses beside a referral": addresses_beside_a_referral,
    "addresses behind an answer": addresses_behind_an_answer,
    "DS of a zone that is not delegated": ds_of_a_zone_that_is_not_delegated,
    "a ring of aliases": a_ring_of_aliases,
    "truncated early": truncated_early,
    "ANY is one RRset": any_is_one_rrset,
}


def explained(asked, ours, theirs):
    """The titles of the rules after which the replies are equal, or None when no rules make them so."""
    titles = []
    for title, rule in RULES.items():
        before = (ours, theirs)
        ours, theirs = rule(asked, ours, theirs)
        if (ours == theirs) > (before[0] == before[1]) or (ours, theirs) != before:
            titles.append(title)
        if ours == theirs:
            return titles
    return None
