"""What is wrong with a zone, from its records alone.

Owns  the checks and their words.
Not   what other servers say: nothing outside the zone is looked up.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import ip_network
from typing import Any, Final, Literal, NamedTuple

Record = dict[str, Any]
Level = Literal["broken", "hint"]

SPF_LOOKUPS_MAX: Final = 10  # RFC 7208 §4.6.4
ALIASES_MAX: Final = 16
_ADDRESSES: Final = frozenset({"A", "AAAA"})
_LEADING: Final = ("MX", "NS", "SRV", "HTTPS", "SVCB")
_SPF_LOOKUPS: Final = frozenset({"include", "a", "mx", "ptr", "exists", "redirect"})
_SPF_NEED_DOMAIN: Final = frozenset({"include", "exists", "redirect"})
_SPF_MECHANISMS: Final = frozenset({"all", "include", "a", "mx", "ptr", "ip4", "ip6", "exists"})
_DMARC_POLICIES: Final = frozenset({"none", "quarantine", "reject"})
_DMARC_ALIGNMENTS: Final = frozenset({"r", "s"})
_DMARC_TAGS: Final = frozenset("v p sp np adkim aspf pct fo rf ri rua ruf t psd".split())


class Finding(NamedTuple):
    """Something to put right (`broken`) or to look at (`hint`)."""

    level: Level
    name: str
    words: str


class _Names:
    """The records of a zone by name."""

    def __init__(self, zone: str, records: Iterable[Record]) -> None:
        self.zone = zone
        self.by_name: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            self.by_name[record["name"].lower()].append(record)
        self._above = {above for name in self.by_name for above in _enclosers(name, zone)}

    def holds(self, name: str) -> bool:
        return name == self.zone or name.endswith("." + self.zone)

    def delegated(self, name: str) -> str | None:
        """The delegation at or above a name, other than the zone itself."""
        for above in (name, *_enclosers(name, self.zone)):
            if above != self.zone and any(r["type"] == "NS" for r in self.by_name.get(above, ())):
                return above
        return None

    def at(self, name: str) -> list[Record]:
        """The records that answer for a name, an asterisk's included."""
        if name in self.by_name or name in self._above:
            return self.by_name.get(name, [])
        for above in _enclosers(name, self.zone):
            if "*." + above in self.by_name:
                return self.by_name["*." + above]
            if above in self.by_name or above in self._above:
                return []
        return []


def _enclosers(name: str, zone: str) -> Iterator[str]:
    while name != zone and "." in name:
        name = name.partition(".")[2]
        yield name


def findings(zone: str, name_servers: Sequence[str], records: Sequence[Record]) -> list[Finding]:
    """Everything that is found, what is broken first."""
    names = _Names(zone.lower(), records)
    found = [
        *_delegation(names, name_servers),
        *(one for name, held in sorted(names.by_name.items()) for one in _at_name(names, name, held)),
        *_mail(names),
    ]
    return sorted(dict.fromkeys(found), key=lambda one: one.level)


def _delegation(names: _Names, name_servers: Sequence[str]) -> Iterator[Finding]:
    for host in map(str.lower, name_servers):
        if names.holds(host) and not _types(names.at(host)) & _ADDRESSES:
            yield Finding("broken", host, "is a name server of this zone and has no A or AAAA record here")
    if not _types(names.at(names.zone)) & (_ADDRESSES | {"CNAME"}):
        yield Finding("hint", names.zone, "has no A, AAAA or CNAME record: the bare name leads nowhere")


def _types(records: Iterable[Record]) -> set[str]:
    return {record["type"] for record in records}


def _at_name(names: _Names, name: str, held: list[Record]) -> Iterator[Finding]:
    cut = names.delegated(name)
    types = _types(held)
    if cut is not None and cut != name and not types <= _ADDRESSES:
        yield Finding(
            "hint", name, f"lies below {cut}, which is delegated: the servers there are asked instead"
        )
        return
    if "NS" in types and name.startswith("*."):
        yield Finding(
            "broken", name, "delegates an asterisk: some servers refuse such a zone (RFC 4592 §4.2)"
        )
    if "CNAME" in types and len(types) > 1 and name != names.zone:
        others = ", ".join(sorted(types - {"CNAME"}))
        yield Finding("hint", name, f"has {others} beside a CNAME: only the CNAME is answered")
    for record in held:
        target = _target(record)
        if target is not None and names.holds(target):
            yield from _leads(names, name, record["type"], target)


def _target(record: Record) -> str | None:
    """The name that a record leads to, or None; the root, which means "nowhere", is None too."""
    kind, data = record["type"], record.get("data") or {}
    if kind in ("CNAME", "NS", "MX"):
        target = str(record.get("content", ""))
    elif kind in _LEADING:
        target = str(data.get("target", ""))
    else:
        return None
    return target.lower().removesuffix(".") or None


def _leads(names: _Names, name: str, kind: str, target: str) -> Iterator[Finding]:
    cut = names.delegated(target)
    if cut is not None and not (kind == "NS" and cut == name):
        return  # another server's business
    held = _types(names.at(target))
    if kind == "CNAME":
        if not held:
            yield Finding("broken", name, f"is an alias of {target}, which does not exist")
        elif _is_ring(names, name):
            yield Finding("broken", name, "is an alias that leads back to itself")
    elif "CNAME" in held and kind in ("MX", "NS", "SRV"):
        yield Finding("broken", name, f"its {kind} names {target}, which is an alias (RFC 2181 §10.3)")
    elif not held & (_ADDRESSES | {"CNAME"}):
        yield Finding("broken", name, f"its {kind} names {target}, which has no address here")


def _is_ring(names: _Names, name: str) -> bool:
    seen = set()
    for _ in range(ALIASES_MAX):
        seen.add(name)
        aliases = [record for record in names.at(name) if record["type"] == "CNAME"]
        if not aliases:
            return False
        name = _target(aliases[0]) or ""
        if name in seen:
            return True
    return True


def _mail(names: _Names) -> Iterator[Finding]:
    for name, held in sorted(names.by_name.items()):
        texts = [text for record in held if record["type"] == "TXT" for text in [_text(record)]]
        policies = [text for text in texts if text.lower() == "v=spf1" or text.lower().startswith("v=spf1 ")]
        if len(policies) > 1:
            yield Finding("broken", name, "has several SPF policies: receivers use none (RFC 7208 §4.5)")
        for policy in policies:
            yield from (Finding(level, name, f"SPF: {words}") for level, words in spf(policy))
        if name.startswith("_dmarc."):
            yield from (Finding(level, name, f"DMARC: {words}") for level, words in _dmarc_at(texts))
    mail = any(record["type"] == "MX" for record in names.by_name.get(names.zone, ()))
    if mail and "_dmarc." + names.zone not in names.by_name:
        yield Finding("hint", names.zone, "receives mail and has no DMARC policy (_dmarc)")


def _text(record: Record) -> str:
    """The text of a TXT record: its quoted strings joined, escapes taken as they stand."""
    content = str(record.get("content", ""))
    if not content.startswith('"'):
        return content
    return "".join(content.strip('"').split('" "'))


def spf(policy: str) -> Iterator[tuple[Level, str]]:
    """What RFC 7208 does not allow in a policy."""
    terms = policy.split()[1:]
    lookups, ended = 0, False
    for term in terms:
        name, argument, modifier = _spf_term(term)
        if modifier and name not in ("redirect", "exp"):
            continue  # unknown modifiers are passed over (RFC 7208 §6)
        if not modifier and name not in _SPF_MECHANISMS:
            yield "broken", f"{term!r} is no mechanism"
            continue
        lookups += name in _SPF_LOOKUPS
        if name in _SPF_NEED_DOMAIN and not argument:
            yield "broken", f"{term!r} names no domain"
        if name in ("ip4", "ip6") and not _is_network(argument, int(name[2])):
            yield "broken", f"{term!r} is no {'IPv4' if name == 'ip4' else 'IPv6'} network"
        if ended and not modifier:
            yield "hint", f"{term!r} stands behind `all` and is never looked at"
        ended = ended or name == "all"
        if term.lower() in ("all", "+all"):
            yield "hint", "`+all` lets everybody send in your name"
    if lookups > SPF_LOOKUPS_MAX:
        yield "broken", f"{lookups} terms need a look-up, at most {SPF_LOOKUPS_MAX} are allowed"
    if not ended and not any(term.lower().startswith("redirect=") for term in terms):
        yield "hint", "it ends without `all`: what it does not name is neither allowed nor refused"


def _spf_term(term: str) -> tuple[str, str, bool]:
    """Name in lower case, argument, and whether it is a modifier (name=value)."""
    at = min((term.find(mark) for mark in ":=/" if mark in term), default=len(term))
    modifier = term[at : at + 1] == "="
    name = term[:at] if modifier else term[:at].lstrip("+-~?")
    return name.lower(), term[at + 1 :], modifier


def _is_network(text: str, version: int) -> bool:
    try:
        return ip_network(text, strict=False).version == version
    except ValueError:
        return False


def _dmarc_at(texts: list[str]) -> Iterator[tuple[Level, str]]:
    policies = [text for text in texts if text.lower().replace(" ", "").startswith("v=dmarc1")]
    if not policies:
        yield "broken", "there is no policy: a TXT record that begins with v=DMARC1"
    elif len(policies) > 1:
        yield "broken", "there are several policies: receivers use none (RFC 7489 §6.6.3)"
    else:
        yield from dmarc(policies[0])


def dmarc(policy: str) -> Iterator[tuple[Level, str]]:
    """What RFC 7489 §6.3 does not allow in a policy."""
    tags: dict[str, str] = {}
    for part in policy.split(";"):
        tag, equals, value = (text.strip() for text in part.partition("="))
        if not part.strip():
            continue
        if not equals or not value:
            yield "broken", f"{part.strip()!r} is no tag=value"
            continue
        if tag.lower() in tags:
            yield "broken", f"the tag {tag} comes twice"
        tags[tag.lower()] = value
    if tags.get("v") != "DMARC1":
        yield "broken", "the first tag is not v=DMARC1, in capitals"
    if "p" not in tags:
        yield "broken", "the tag p is missing: none, quarantine or reject"
    for tag, value in tags.items():
        if tag not in _DMARC_TAGS:
            yield "hint", f"the tag {tag} is not known and passed over"
        elif tag in _DMARC_VALUES and not _DMARC_VALUES[tag](value):
            yield "broken", f"{tag}={value} is not allowed"


def _is_report_list(value: str) -> bool:
    return all(uri.strip().lower().startswith("mailto:") and "@" in uri for uri in value.split(","))


_DMARC_VALUES: Final[dict[str, Callable[[str], bool]]] = {
    **dict.fromkeys(("p", "sp", "np"), lambda value: value.lower() in _DMARC_POLICIES),
    **dict.fromkeys(("adkim", "aspf"), lambda value: value.lower() in _DMARC_ALIGNMENTS),
    **dict.fromkeys(("rua", "ruf"), _is_report_list),
    "pct": lambda value: value.isascii() and value.isdigit() and int(value[:4]) <= 100,
}
