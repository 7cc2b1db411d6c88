"""Every difference between our answers and those of NSD, Knot and BIND, as a rule with its reason.

A rule takes what differs for this reason out of a pair of replies; what is left must be equal. It holds for
the servers that stand beside it, and no other. Each rule's title is a line of docs/differences.md, under "DNS
answers beside other servers".
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.dns.facts import AD, ANY, CD, CNAME, NAMES_BEFORE, NS, SOA, TC, Facts

SERVFAIL, NXDOMAIN, REFUSED, BADVERS = 2, 3, 5, 16
ADDRESSES = (1, 28)
MX, SRV = 15, 33
RRSIG, NSEC = 46, 47
DS = 43
SPARE_OCTETS = 40
EXTENDED_ERROR = 15
Z = 0x0040


class Asked(NamedTuple):
    """A question and who else was asked.

    The apexes of all zones that are served and their names; the octets that our reply left; what we say to
    the same packet when the zone of the question is the only one that is served.
    """

    peer: str
    name: str
    kind: int
    flags: int
    apexes: tuple
    owners: frozenset
    spare: int
    alone: Callable[[], Facts]

    def zone_of(self, name):
        """The apex of the zone that answers for a name: for DS of an apex the one above, if it is here."""
        above = sorted((apex for apex in self.apexes if _below(name, apex)), key=len)
        if self.kind == DS and name in above[1:]:
            above.pop()
        return above[-1] if above else None


Rule = Callable[[Asked, Facts, Facts], tuple[Facts, Facts]]


def _below(name, apex):
    return ("." + name).endswith("." + apex)


def _target(record):
    return record[4][NAMES_BEFORE[record[1]][0] :].decode("latin-1")


def _aliases(asked, reply):
    """The aliases from the question's name on while they are of its zone, and the name where they end."""
    name, home, chain = asked.name, asked.zone_of(asked.name), ()
    while home is not None and asked.zone_of(name) == home:
        alias = tuple(record for record in reply.answer if record[:2] == (name, CNAME))
        if not alias or alias[0] in chain:
            break
        chain += alias
        name = _target(alias[0])
    return chain, name


def _leaves(asked, name):
    """Whether another zone of ours answers for a name."""
    return asked.zone_of(name) not in (None, asked.zone_of(asked.name))


def _of_one_zone(asked):
    """What a server says that does not look into another zone: Knot stays in the first, BIND stops there."""
    alone = asked.alone()
    chain, name = _aliases(asked, alone)
    if asked.peer == "BIND" and _leaves(asked, name):
        return alone._replace(rcode=0, answer=tuple(sorted(chain)), authority=(), additional=())
    return alone


def ad_of_a_truncated_reply(asked, ours, theirs):
    """It comes back from the query when the first RRset does not fit."""
    if not ours.flags & theirs.flags & TC:
        return ours, theirs
    return ours, theirs._replace(flags=theirs.flags & ~(asked.flags & AD))


def records_of_a_truncated_reply(asked, ours, theirs):
    if not ours.flags & theirs.flags & TC:
        return ours, theirs
    return tuple(reply._replace(answer=(), authority=(), additional=()) for reply in (ours, theirs))


def cd_and_z_that_come_back(asked, ours, theirs):
    error = ours.rcode in (REFUSED, BADVERS)
    copied = asked.flags & (CD if asked.peer == "BIND" else (CD | Z) * error)
    return ours, theirs._replace(flags=theirs.flags & ~copied)


def do_of_an_error(asked, ours, theirs):
    if ours.rcode not in (REFUSED, BADVERS) or not (ours.opt and theirs.opt):
        return ours, theirs
    return ours, theirs._replace(opt=theirs.opt._replace(do=ours.opt.do))


def the_reason_of_a_refusal(asked, ours, theirs):
    return (_without_reason(ours) if ours.rcode == REFUSED else ours), theirs


def _without_reason(reply):
    opt = reply.opt and reply.opt._replace(options=reply.opt.options - {EXTENDED_ERROR})
    return reply._replace(opt=opt)


def aliases_into_other_zones(asked, ours, theirs):
    chain, name = _aliases(asked, asked.alone())
    followed = ours.flags & TC or set(chain) <= set(ours.answer)
    if asked.kind in (CNAME, ANY) or not _leaves(asked, name) or not followed:
        return ours, theirs
    return _of_one_zone(asked), theirs


def signatures_of_an_alias(asked, ours, theirs):
    """They have no data there."""
    soa = [record for record in theirs.authority if record[:2] == (asked.zone_of(asked.name), SOA)]
    if asked.kind not in (RRSIG, NSEC) or not _aliases(asked, asked.alone())[0] or len(soa) != 1:
        return ours, theirs
    return ours._replace(rcode=0, answer=(), authority=tuple(soa), additional=()), theirs


def addresses_beside_a_referral(asked, ours, theirs):
    """Those of its name servers that are not below the cut."""
    cuts = [record[0] for record in ours.authority if record[1] == NS]
    if not cuts or ours.authority != theirs.authority:
        return ours, theirs
    beside = {name for name in map(_target, ours.authority) if not _below(name, cuts[0])}
    return _without_addresses(ours, beside), _without_addresses(theirs, beside)


def addresses_behind_an_answer(asked, ours, theirs):
    """Of the names that the records of an answer lead to."""
    if ours.answer != theirs.answer:
        return ours, theirs
    kinds = (NS, MX, SRV) if asked.peer == "Knot" else (NS,)
    targets = {_target(record) for record in ours.answer if record[1] in kinds}
    return _without_addresses(ours, targets), _without_addresses(theirs, targets)


def _without_addresses(reply, names):
    left = (record for record in reply.additional if record[0] not in names or record[1] not in ADDRESSES)
    return reply._replace(additional=tuple(left))


def ds_of_a_zone_that_is_not_delegated(asked, ours, theirs):
    """Its parent is here too, and has no NS records for it: they see no name there, or an asterisk's."""
    home = asked.zone_of(asked.name)
    chain, ends = _aliases(asked, ours)
    no_data = not ours.rcode and ours.answer == tuple(sorted(chain))
    no_data = no_data and [record[:2] for record in ours.authority] == [(home, SOA)]
    if asked.kind != DS or ends not in asked.apexes or asked.zone_of(ends) != home or not no_data:
        return ours, theirs
    return _of_one_zone(asked), theirs


def a_ring_of_aliases(asked, ours, theirs):
    owners = {record[0] for record in ours.answer}
    ring = any(record[1] == CNAME and _target(record) in owners for record in ours.answer)
    if not ring or theirs.rcode != SERVFAIL or ours.rcode or ours.answer != theirs.answer:
        return ours, theirs
    return ours, _without_reason(theirs)._replace(rcode=0)


def a_ring_of_an_asterisk(asked, ours, theirs):
    """It leads to the name that was asked for, which they write twice."""
    ring = [record for record in ours.answer if record[1] == CNAME and _target(record) == asked.name]
    if asked.name in asked.owners or ours.answer != tuple(ring) or theirs.answer != ours.answer * 2:
        return ours, theirs
    return ours, theirs._replace(answer=ours.answer)


def glue_from_an_asterisk(asked, ours, theirs):
    cuts = [record[0] for record in ours.authority if record[1] == NS]
    if not cuts:
        return ours, theirs
    written = tuple(r for r in theirs.additional if r[0] in asked.owners or not _below(r[0], cuts[0]))
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


NSD, KNOT, BIND = "NSD", "Knot", "BIND"
RULES: dict[str, tuple[tuple[str, ...], Rule]] = {
    "records of a truncated reply": ((NSD, BIND), records_of_a_truncated_reply),
    "AD of a truncated reply": ((BIND,), ad_of_a_truncated_reply),
    "CD and Z that come back": ((NSD, BIND), cd_and_z_that_come_back),
    "DO of an error": ((NSD,), do_of_an_error),
    "the reason of a refusal": ((BIND,), the_reason_of_a_refusal),
    "signatures of an alias": ((KNOT, BIND), signatures_of_an_alias),
    "aliases into other zones": ((KNOT, BIND), aliases_into_other_zones),
    "glue from an asterisk": ((KNOT,), glue_from_an_asterisk),
    "addresses beside a referral": ((KNOT, BIND), addresses_beside_a_referral),
    "addresses behind an answer": ((KNOT, BIND), addresses_behind_an_answer),
    "DS of a zone that is not delegated": ((KNOT, BIND), ds_of_a_zone_that_is_not_delegated),
    "a ring of aliases": ((BIND,), a_ring_of_aliases),
    "a ring of an asterisk": ((NSD, KNOT), a_ring_of_an_asterisk),
    "truncated early": ((BIND,), truncated_early),
    "ANY is one RRset": ((NSD, KNOT, BIND), any_is_one_rrset),
}


def explained(asked, ours, theirs):
    """The titles of the rules after which the replies are equal, or None when no rules make them so."""
    titles = []
    for title, (peers, rule) in RULES.items():
        before = (ours, theirs)
        if asked.peer in peers:
            ours, theirs = rule(asked, ours, theirs)
        if (ours, theirs) != before:
            titles.append(title)
        if ours == theirs:
            return titles
    return None
