"""Reading a catalog zone: which zones it lists, and what it says of each (RFC 9432 §4).

Owns  which catalog is broken; reading members, their groups and changes of ownership.
Not   what follows for zones (`usecases.account.membership`). Pure.

    name below the catalog       records                       else
    version                      one TXT of one text, "2"      the catalog is broken
    LABEL.zones                  one PTR                       broken, if there are several
    group.LABEL.zones            TXT, each one text            no groups
    coo.LABEL.zones              one PTR                       none
    anything else                any                           not looked at (§4.5, §5.1)

A zone that is listed twice breaks the catalog, too: nobody can say which label is its. A catalog is taken
whole or not at all.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from edgestead.model import names
from edgestead.model.names import InvalidName
from edgestead.model.records import TYPES
from edgestead.usecases import limits
from edgestead.usecases.zone.secondary import Content, Rr, Unfit

VERSION: Final = "2"
_PTR, _TXT = TYPES["PTR"].number, TYPES["TXT"].number
_ZONES, _GROUP, _COO = b"zones", b"group", b"coo"

Path = tuple[bytes, ...]
"""The labels of a name below the catalog, the nearest to it first."""


class Member(NamedTuple):
    """A zone as a catalog lists it. `coo` is the catalog that may take it over, "" for none."""

    name: str
    label: str
    groups: tuple[str, ...] = ()
    coo: str = ""


def members_of(content: Content, apex: bytes) -> dict[str, Member]:
    """By name. Raises Unfit: the catalog is broken, or has too many members."""
    found = _by_path(content.records, apex)
    _check_version(found.get((b"version",), ()))
    members: dict[str, Member] = {}
    for path, records in found.items():
        if len(path) != 2 or path[0] != _ZONES:
            continue
        label = names.text_from_wire(bytes((len(path[1]),)) + path[1] + b"\0")
        name = _listed(records, label)
        if name is None:
            continue
        if name in members:
            raise Unfit(f"the catalog is broken: it lists {name} twice")
        if len(members) >= limits.FOLLOWED_MEMBERS_MAX:
            raise Unfit(f"the catalog lists more than {limits.FOLLOWED_MEMBERS_MAX} zones")
        groups = tuple(sorted(_texts(found.get((*path, _GROUP), ()))))
        moves_to = _names(found.get((*path, _COO), ()))
        coo = moves_to[0] if len(moves_to) == 1 else ""
        members[name] = Member(name, label, groups[: limits.CATALOG_GROUPS_MAX], coo)
    return members


def _by_path(records: Iterable[Rr], apex: bytes) -> Mapping[Path, list[Rr]]:
    found: dict[Path, list[Rr]] = {}
    for rr in records:
        path = names.labels(rr.owner[: len(rr.owner) - len(apex)] + b"\0")[::-1]
        found.setdefault(path, []).append(rr)
    return found


def _check_version(records: Iterable[Rr]) -> None:
    texts = [rr.rdata for rr in records if rr.type == _TXT]
    if len(texts) != 1:
        raise Unfit(f"the catalog is broken: it has {len(texts) or 'no'} records of its version")
    wanted = VERSION.encode()
    if texts[0] != bytes((len(wanted),)) + wanted:
        shown = names.shown(texts[0][1:].decode("ascii", "replace"))
        raise Unfit(f"the catalog is of version {shown}, and only version {VERSION} is known here")


def _listed(records: Iterable[Rr], label: str) -> str | None:
    """The member at a label; None where there is no PTR record."""
    listed = _names(records)
    if len(listed) > 1:
        raise Unfit(f"the catalog is broken: its label {label} has {len(listed)} PTR records")
    return listed[0] if listed else None


def _names(records: Iterable[Rr]) -> list[str]:
    try:
        return [names.text_from_wire(rr.rdata.lower()) for rr in records if rr.type == _PTR]
    except (InvalidName, ValueError, IndexError):
        raise Unfit("the catalog is broken: a PTR record has no name") from None


def _texts(records: Iterable[Rr]) -> list[str]:
    """Of TXT records with one text each; §4.4.2 has no other."""
    rdatas = [rr.rdata for rr in records if rr.type == _TXT]
    whole = [rdata[1:] for rdata in rdatas if rdata and rdata[0] == len(rdata) - 1]
    return [text.decode() for text in whole if text.isascii()]
