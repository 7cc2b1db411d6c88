"""What a server holds, as a document that people read, write and compare.

Owns  its shape, what of a server's answers goes into it, reading and writing it, normal forms.
Not   servers (`cli.state.server`); what differs (`cli.state.plan`).

    [zones."example.com"]                       a zone that is not named stays as it is
    paused = false
    settings = { ssl = "strict" }               those that are named
    dns_settings = { flatten_all_cnames = true }
    records = [ { name, type, content, … } ]    all of them; without the key they stay
    rrsets = [ { name, type, content, … } ]     all of each name and type that is named, where others stay
    rules = { custom = [ { action, … } ] }      all of each phase that is named
    namespaces = [ "titles" ]                   at least these

In this shape `records` of one name and type are compared as a set, rules in their order.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from edgestead.cli.failure import Failed, listed
from edgestead.cli.files import read_path
from edgestead.cli.rule.phases import full_name as phase_of
from edgestead.cli.rule.phases import word_of
from edgestead.model.rule_members import RULE_MEMBERS

Json = dict[str, Any]

FILE_BYTES_MAX = 64 << 20
ZONE_MEMBERS = {
    "paused": bool,
    "settings": dict,
    "dns_settings": dict,
    "records": list,
    "rrsets": list,
    "rules": dict,
}
RECORD_LISTS = ("records", "rrsets")
RECORD_MEMBERS = ("name", "type", "content", "priority", "ttl", "proxied", "comment", "tags", "settings")
RECORD_DEFAULTS: Json = {
    "ttl": 1,
    "proxied": False,
    "comment": None,
    "tags": [],
    "settings": {},
    "priority": None,
}
RULE_DEFAULTS: Json = {"expression": "true", "description": "", "enabled": True}
DNS_SETTINGS = ("flatten_all_cnames", "multi_provider", "ns_ttl")
_HOSTS = frozenset({"CNAME", "NS", "MX", "PTR", "SRV"})  # whose content ends in a name
_SRV_BLANKS = 3  # of one whose priority is in its content
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def read(path: Path) -> Json:
    """A document from a file, checked and in normal form. Raises Failed."""
    content = read_path(path, FILE_BYTES_MAX)
    try:
        text = content.decode()
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failed(f"{path}: {error}.") from None
    try:
        return _checked(document)
    except ValueError as error:
        raise Failed(f"{path}: {error}.") from None


def write(document: Json, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    import tomlkit

    whole = tomlkit.document()
    if document.get("namespaces"):
        whole["namespaces"] = document["namespaces"]
    zones = whole.setdefault("zones", tomlkit.table(is_super_table=True))
    for name, zone in document.get("zones", {}).items():
        zones[name] = _toml_zone(zone)
    return tomlkit.dumps(whole)


def _toml_zone(zone: Json) -> Any:
    """Lists of records and rules have one line an item, so that a diff of two files shows items."""
    import tomlkit

    table = tomlkit.table()
    for member in ("paused", "settings", "dns_settings"):
        if member in zone:
            table[member] = zone[member]
    for member in RECORD_LISTS:
        if member in zone:
            table[member] = _lines(zone[member])
    if "rules" in zone:
        rules = tomlkit.table()
        for phase, items in zone["rules"].items():
            rules[phase] = _lines(items)
        table["rules"] = rules
    return table


def _lines(items: Iterable[Json]) -> Any:
    import tomlkit

    array = tomlkit.array()
    for item in items:
        inline = tomlkit.inline_table()
        inline.update(item)
        array.append(inline)
    return array.multiline(True)


def _checked(document: object) -> Json:
    """Raises ValueError with the place."""
    whole = _object(document, "the document", ("zones", "namespaces"))
    namespaces = whole.get("namespaces", [])
    if not isinstance(namespaces, list) or not all(isinstance(one, str) for one in namespaces):
        raise ValueError("namespaces is not a list of titles")
    zones = {}
    for name, zone in _object(whole.get("zones", {}), "zones").items():
        zones[name.lower().removesuffix(".")] = _zone(zone, name.lower().removesuffix("."))
    return {"zones": zones, **({"namespaces": namespaces} if "namespaces" in whole else {})}


def _zone(value: object, name: str) -> Json:
    zone = _object(value, f"zone {name}", ZONE_MEMBERS)
    for member, kind in ZONE_MEMBERS.items():
        if member in zone and not isinstance(zone[member], kind):
            raise ValueError(f"zone {name}: {member} is not {_KINDS[kind]}")
    checked = dict(zone)
    for member in RECORD_LISTS:
        if member in zone:
            checked[member] = [_record(one, name, place) for place, one in enumerate(zone[member], 1)]
    if "records" in zone and "rrsets" in zone:
        raise ValueError(f"zone {name}: records are all of the zone, so there are no rrsets beside them")
    if "rules" in zone:
        checked["rules"] = {
            word_of(phase_of(phase)): _rules(rules, name, phase) for phase, rules in zone["rules"].items()
        }
    return checked


_KINDS = {bool: "true or false", dict: "a table", list: "a list"}


def _record(value: object, zone: str, place: int) -> Json:
    where = f"zone {zone}, record {place}"
    record = _object(value, where, RECORD_MEMBERS)
    for member in ("name", "type", "content"):
        if not isinstance(record.get(member), str):
            raise ValueError(f"{where}: {member} is missing, or no text")
    return record_form({**record, "name": absolute(record["name"], zone)}, zone)


def _rules(value: object, zone: str, phase: str) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError(f"zone {zone}: rules of {phase} are not a list")
    where = f"zone {zone}, rule {{}} of {phase}"
    rules = [_object(one, where.format(place), RULE_MEMBERS) for place, one in enumerate(value, 1)]
    for place, rule in enumerate(rules, 1):
        if not isinstance(rule.get("action"), str):
            raise ValueError(f"{where.format(place)}: action is missing, or no text")
    return [rule_form(rule) for rule in rules]


def _object(value: object, where: str, known: Iterable[str] | None = None) -> Json:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is not a table")
    if known is not None and (unknown := [name for name in value if name not in known]):
        raise ValueError(f"{where}: {listed(map(repr, unknown))} is unknown; known are {listed(known)}")
    return value


def absolute(name: str, zone: str) -> str:
    """`www`, `@` or the whole name, as the whole name."""
    text = name.lower().removesuffix(".")
    if text in ("@", ""):
        return zone
    return text if text == zone or text.endswith("." + zone) else f"{text}.{zone}"


def relative(name: str, zone: str) -> str:
    return "@" if name == zone else name.removesuffix("." + zone)


def record_form(record: Mapping[str, Any], zone: str) -> Json:
    """A record of an answer or a file as the document has it: what is as by default is left out."""
    form: Json = {"name": relative(absolute(record["name"], zone), zone), "type": record["type"].upper()}
    form["content"] = content_form(form["type"], record["content"])
    given = dict(record)
    if form["type"] == "SRV" and record.get("priority") is None and form["content"].count(" ") == _SRV_BLANKS:
        priority, _, form["content"] = form["content"].partition(" ")
        given["priority"] = int(priority) if priority.isdigit() else priority
    if isinstance(given.get("settings"), dict):
        given["settings"] = {name: value for name, value in given["settings"].items() if value}
    for member, default in RECORD_DEFAULTS.items():
        value = given.get(member, default)
        if value not in (default, None, "", [], {}):
            form[member] = sorted(value) if member == "tags" else value
    return form


def content_form(type_: str, content: str) -> str:
    """One spelling for what means the same."""
    if type_ in _HOSTS:
        return content.lower().removesuffix(".")
    if type_ in ("A", "AAAA"):
        try:
            return str(ip_address(content))
        except ValueError:
            return content
    if type_ == "TXT" and len(parts := _QUOTED.findall(content)) == 1 and content == f'"{parts[0]}"':
        return parts[0] if "\\" not in parts[0] else content
    return content


def rule_form(rule: Mapping[str, Any]) -> Json:
    """A rule of an answer or a file as the document has it; a `ref` that is its id says nothing."""
    form = {member: rule[member] for member in RULE_MEMBERS if rule.get(member) not in (None, {})}
    if form.get("ref") == rule.get("id"):
        form.pop("ref", None)
    return {member: value for member, value in form.items() if RULE_DEFAULTS.get(member, _NONE) != value}


_NONE = object()
