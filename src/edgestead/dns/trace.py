"""An explanation, step by step, why a question gets its answer.

Owns  the texts.
Not   the answer itself, which is computed as for every client (`answer`); the origin of records: a name that
      is proxied or flattened has only addresses here.
"""

from typing import Final

from edgestead.dns import node, wire
from edgestead.dns.lookup import ALIASES_MAX, View
from edgestead.dns.zone import DNAME_KEY, WILDCARD, Zone, redirects
from edgestead.model.limits import NAME_OCTETS_MAX

_DS: Final = 43
_SHOWN: Final = range(33, 127)


def trace(view: View, name: bytes, kind: int) -> list[str]:
    """The steps from a valid, lower-case name to its outcome for a type of class IN."""
    steps: list[str] = []
    seen: set[bytes] = set()
    for _ in range(ALIASES_MAX):
        seen.add(name)
        target = _step(view, name, kind, steps)
        if target is None:
            return steps
        if target in seen:
            steps.append(f"{text(target)} was there before: the aliases form a ring, the answer ends here")
            return steps
        name = target
    steps.append(f"more than {ALIASES_MAX} aliases: the answer ends here")
    return steps


def _step(view: View, name: bytes, kind: int, steps: list[str]) -> bytes | None:
    """Explain one name; returns the target when it is an alias to be followed."""
    zone = view.zone_of(name)
    if zone is not None and kind == _DS and name == zone.apex and len(name) > 1:
        zone = view.zone_of(wire.parent(name)) or zone
    if zone is None:
        steps.append(f"no zone here holds {text(name)}: refused, or, behind an alias, left to others")
        return None
    steps.append(f"zone {text(zone.apex)} answers for {text(name)}")
    if not zone.names:
        steps.append("it is a secondary zone that was never transferred, or has expired: SERVFAIL")
        return None
    relative = name[: len(name) - len(zone.apex)]
    cut = zone.cut_above(relative)
    if cut is not None and redirects(zone.names[cut]):
        if cut != relative:
            return _substituted(zone, name, cut, steps)
    elif cut is not None and not (cut == relative and kind == _DS):
        steps.append(f"{text(cut + zone.apex)} is delegated: the answer names its servers")
        return None
    held = zone.names.get(relative)
    if held is None:
        held = _missing(zone, name, relative, steps)
    elif not held:
        steps.append(f"{text(name)} exists only because of names below it: no data")
        return None
    return _at_node(held, kind, steps) if held is not None else None


def _substituted(zone: Zone, name: bytes, cut: bytes, steps: list[str]) -> bytes | None:
    above = cut + zone.apex
    _, rrs = node.rrset(zone.names[cut], DNAME_KEY) or (0, b"")
    target = name[: len(name) - len(above)] + next(wire.records(rrs))[2].lower()
    if len(target) > NAME_OCTETS_MAX:
        steps.append(f"{text(above)} redirects all names below it, and this one would get too long: YXDOMAIN")
        return None
    steps.append(f"{text(above)} redirects all names below it: this one to {text(target)}")
    return target


def _missing(zone: Zone, name: bytes, relative: bytes, steps: list[str]) -> bytes | None:
    encloser = zone.encloser(relative)
    held = zone.names.get(WILDCARD + encloser)
    above = text(encloser + zone.apex)
    if held is None:
        steps.append(f"there is no {text(name)}, nor an asterisk under {above}: NXDOMAIN")
    else:
        steps.append(f"there is no {text(name)}; the asterisk *.{above} stands in for it")
    return held


def _at_node(held: bytes, kind: int, steps: list[str]) -> bytes | None:
    every = {key: (count, rrs) for key, count, rrs in node.rrsets(held)}
    types = {int.from_bytes(key[:2], "big"): one for key, one in every.items() if not node.is_mark(key)}
    if node.EXISTS_KEY in every:
        steps.append("it exists, but none of its records is served (an alias to nothing, say): no data")
    elif node.PENDING_KEY in every and kind in (wire.A, wire.AAAA) and kind not in types:
        steps.append("it is flattened, and its target was never resolved yet: SERVFAIL")
    elif kind in types or (kind == wire.ANY and types):
        count, rrs = types[kind] if kind in types else next(iter(types.values()))
        _, ttl_seconds, _ = next(wire.records(rrs))
        steps.append(f"{count} record{'s' if count > 1 else ''} with TTL {ttl_seconds}")
    elif wire.CNAME in types:
        target = next(wire.records(types[wire.CNAME][1]))[2].lower()
        steps.append(f"it is an alias of {text(target)}")
        return target
    else:
        steps.append("it has no record of this type: no data")
    return None


def text(name: bytes) -> str:
    """A readable name. Octets that are not printable, dots and backslashes are escaped (RFC 1035 §5.1)."""
    labels, at = [], 0
    while length := name[at]:
        label = name[at + 1 : at + 1 + length]
        labels.append("".join(_character(octet) for octet in label))
        at += length + 1
    return ".".join(labels) + "."


def _character(octet: int) -> str:
    if octet in b".\\":
        return "\\" + chr(octet)
    return chr(octet) if octet in _SHOWN else f"\\{octet:03d}"
