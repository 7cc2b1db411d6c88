"""What a server holds, as a document that people read, write and compare.

Owns  its shape, what of a server's answers goes into it, reading and writing it, normal forms.
Not   servers (`cli.state.server`); what differs (`cli.state.plan`).

    [zones."example.com"]                       a zone that is not named stays as it is
    paused = false
    settings = { ssl = "strict" }               those that are named
    dns_settings = { flatten_all_cnames = true }
    dnssec = "active"                           or "disabled"
    dnssec_settings = { key_layout = "ksk-zsk" }    those that are named
    records = [ { name, type, content, … } ]    all of them; without the key they stay
    rrsets = [ { name, type, content, … } ]     all of each name and type that is named, where others stay
    rules = { custom = [ { action, … } ] }      all of each phase that is named
    rules = { custom = [ { action, … } ] }      the account's own: all of each phase that is named
    type = "secondary"                          instead of records; primaries = [ { ip, … } ]
    tsig_keys = [ { name, … } ]                 at least these, without secrets: `cli.state.secondaries`
    rulesets = [ { name, phase, rules, … } ]    custom ones of the account, at least these, by phase and name
    namespaces = [ "titles" ]                   at least these
    tokens = [ { name, policies, … } ]          at least these: `cli.state.tokens`

In this shape `records` of one name and type are compared as a set, rules in their order. A rule names a
custom ruleset by its phase and name (`cli.rule.names`).
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from edgestead.cli.failure import Failed, listed
from edgestead.cli.files import read_path
from edgestead.cli.rule.phases import full_name as phase_of
from edgestead.cli.rule.phases import word_of
from edgestead.cli.state import secondaries, tokens
from edgestead.cli.state.secondaries import FULL, SECONDARY
from edgestead.model.rule_members import RULE_MEMBERS

Json = dict[str, Any]

FILE_BYTES_MAX = 64 << 20
ZONE_MEMBERS = {
    "type": str,
    "primaries": list,
    "paused": bool,
    "settings": dict,
    "dns_settings": dict,
    "dnssec": str,
    "dnssec_settings": dict,
    "records": list,
    "rrsets": list,
    "rules": dict,
}
WHOLE_MEMBERS = ("zones", "rules", "rulesets", "tsig_keys", "namespaces", "tokens")
OF_ACCOUNT = WHOLE_MEMBERS[1:]  # what a document of chosen zones has not
RULESET_MEMBERS: Mapping[str, type] = {"name": str, "phase": str, "description": str, "rules": list}
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
RULE_PART_DEFAULTS: Mapping[str, Json] = {
    "action_parameters": {"version": "latest"},  # of the ruleset that is executed
    "ratelimit": {"mitigation_timeout": 0, "requests_to_origin": False},
}
DNS_SETTINGS = {
    FULL: ("flatten_all_cnames", "multi_provider", "ns_ttl"),
    SECONDARY: ("secondary_overrides",),
}
DNSSEC_WORDS = ("active", "disabled")
DNSSEC_DEFAULTS: Json = {
    "dnssec_multi_signer": False,
    "dnssec_presigned": False,
    "dnssec_use_nsec3": False,
    "key_layout": "csk",
    "ksk_lifetime_days": 0,
    "zsk_lifetime_days": 90,
    "zonemd": False,
}
_HOSTS = frozenset({"CNAME", "NS", "MX", "PTR", "SRV"})  # whose content ends in a name
_SRV_BLANKS = 3  # of one whose priority is in its content
_MARKS = frozenset('"\\')  # of a text that is written in quotes
TXT_STRING_OCTETS_MAX = 255  # RFC 1035 §3.3


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
    if document.get("tsig_keys"):
        whole["tsig_keys"] = _lines(document["tsig_keys"])
    if document.get("namespaces"):
        whole["namespaces"] = document["namespaces"]
    for member, lines in (("tokens", "policies"), ("rulesets", "rules")):
        if document.get(member):
            whole[member] = tomlkit.aot()
            for item in document[member]:
                whole[member].append(_toml_item(item, lines))
    if document.get("rules"):
        whole["rules"] = _toml_rules(document["rules"])
    zones = whole.setdefault("zones", tomlkit.table(is_super_table=True))
    for name, zone in document.get("zones", {}).items():
        zones[name] = _toml_zone(zone)
    return tomlkit.dumps(whole)


def _toml_zone(zone: Json) -> Any:
    """Lists of records and rules have one line an item, so that a diff of two files shows items."""
    import tomlkit

    table = tomlkit.table()
    for member in ("type", "paused", "settings", "dns_settings", "dnssec", "dnssec_settings"):
        if member in zone:
            table[member] = zone[member]
    for member in ("primaries", *RECORD_LISTS):
        if member in zone:
            table[member] = _lines(zone[member])
    if "rules" in zone:
        table["rules"] = _toml_rules(zone["rules"])
    return table


def _toml_rules(rules: Json) -> Any:
    import tomlkit

    table = tomlkit.table()
    for phase, items in rules.items():
        table[phase] = _lines(items)
    return table


def _toml_item(item: Json, lines: str) -> Any:
    """A token or ruleset; what its member `lines` holds has one line each."""
    import tomlkit

    table = tomlkit.table()
    for member, value in item.items():
        table[member] = _lines(value) if member == lines else value
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
    whole = _object(document, "the document", WHOLE_MEMBERS)
    namespaces = whole.get("namespaces", [])
    if not isinstance(namespaces, list) or not all(isinstance(one, str) for one in namespaces):
        raise ValueError("namespaces is not a list of titles")
    zones = {}
    for name, zone in _object(whole.get("zones", {}), "zones").items():
        zones[name.lower().removesuffix(".")] = _zone(zone, name.lower().removesuffix("."))
    checked: Json = {"zones": zones}
    if "namespaces" in whole:
        checked["namespaces"] = namespaces
    if "tokens" in whole:
        checked["tokens"] = tokens.checked(whole["tokens"])
    if "rules" in whole:
        checked["rules"] = _phases(_object(whole["rules"], "rules"), "the account")
    if "tsig_keys" in whole:
        checked["tsig_keys"] = [
            secondaries.key_form(one)
            for one in _tables(whole["tsig_keys"], "TSIG key", secondaries.KEY_MEMBERS, "name")
        ]
    if "rulesets" in whole:
        checked["rulesets"] = _rulesets(whole["rulesets"])
    return checked


def _phases(rules: Json, owner: str) -> Json:
    return {word_of(phase_of(phase)): _rules(items, owner, phase) for phase, items in rules.items()}


def _rulesets(value: object) -> list[Json]:
    items = _tables(value, "ruleset", RULESET_MEMBERS, "name", "phase")
    found = [_ruleset(one, f"ruleset {place}") for place, one in enumerate(items, 1)]
    if twice := [one for one, count in Counter(map(ruleset_name, found)).items() if count > 1]:
        raise ValueError(f"the ruleset {twice[0]} is there twice")
    return found


def _tables(value: object, what: str, members: Mapping[str, type], *required: str) -> list[Json]:
    """A list of tables of these members, each of its type."""
    if not isinstance(value, list):
        raise ValueError(f"{what}s are not a list")
    for place, one in enumerate(value, 1):
        item = _object(one, f"{what} {place}", members)
        for member, kind in members.items():
            if type(item.get(member, kind())) is not kind:
                raise ValueError(f"{what} {place}: {member} is not {_KINDS[kind]}")
        if not all(item.get(member) for member in required):
            raise ValueError(f"{what} {place}: {' or '.join(required)} {_ARE[len(required) > 1]} missing")
    return value


_ARE = {False: "is", True: "are"}


def _ruleset(ruleset: Json, where: str) -> Json:
    rules = _rules(ruleset.get("rules", []), where, ruleset["phase"])
    return ruleset_form({**ruleset, "phase": phase_of(ruleset["phase"]), "rules": rules})


def _zone(value: object, name: str) -> Json:
    zone = _object(value, f"zone {name}", ZONE_MEMBERS)
    for member, kind in ZONE_MEMBERS.items():
        if member in zone and not isinstance(zone[member], kind):
            raise ValueError(f"zone {name}: {member} is not {_KINDS[kind]}")
    checked = {**zone, **_type_of(zone, name)}
    for member in RECORD_LISTS:
        if member in zone:
            checked[member] = [_record(one, name, place) for place, one in enumerate(zone[member], 1)]
    if "settings" in zone:
        checked["settings"] = {id_: setting_form(value) for id_, value in zone["settings"].items()}
    if "records" in zone and "rrsets" in zone:
        raise ValueError(f"zone {name}: records are all of the zone, so there are no rrsets beside them")
    if "rules" in zone:
        checked["rules"] = _phases(zone["rules"], f"zone {name}")
    return checked


_KINDS = {bool: "true or false", dict: "a table", list: "a list", str: "a text", int: "a number"}


def _type_of(zone: Json, name: str) -> Json:
    """What belongs to a zone's type, checked."""
    if zone.get("type", FULL) not in (FULL, SECONDARY):
        raise ValueError(f"zone {name}: type is {FULL} or {SECONDARY}")
    if zone.get("dnssec", "active") not in DNSSEC_WORDS:
        raise ValueError(f"zone {name}: dnssec is {' or '.join(DNSSEC_WORDS)}")
    _object(zone.get("dnssec_settings", {}), f"zone {name}, dnssec_settings", DNSSEC_DEFAULTS)
    if zone.get("type") != SECONDARY:
        if "primaries" in zone:
            raise ValueError(f'zone {name}: primaries are those of a zone with type = "{SECONDARY}"')
        return {}
    if own := sorted(secondaries.OF_PRIMARIES & zone.keys()):
        raise ValueError(f"zone {name} is secondary: its {listed(own)} are its primary's")
    members = secondaries.PRIMARY_MEMBERS
    primaries = _tables(zone.get("primaries", []), f"zone {name}, primary", members, "ip")
    return {"primaries": [secondaries.primary_form(one) for one in primaries]} if "primaries" in zone else {}


def _record(value: object, zone: str, place: int) -> Json:
    where = f"zone {zone}, record {place}"
    record = _object(value, where, RECORD_MEMBERS)
    for member in ("name", "type", "content"):
        if not isinstance(record.get(member), str):
            raise ValueError(f"{where}: {member} is missing, or no text")
    return record_form({**record, "name": absolute(record["name"], zone)}, zone)


def _rules(value: object, owner: str, phase: str) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError(f"{owner}: rules of {phase} are not a list")
    where = f"{owner}, rule {{}} of {phase}"
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
        text = content.lower()
        return text if text.split(" ")[-1] == "." else text.removesuffix(".")  # the root is a name, too
    if type_ in ("A", "AAAA"):
        try:
            return str(ip_address(content))
        except ValueError:
            return content
    return _text_form(content) if type_ == "TXT" else content


def _text_form(content: str) -> str:
    """Without quotes where none are needed. A long text is one, though DNS cuts it every 255 octets."""
    if _is_bare(content) and len(content.encode()) <= TXT_STRING_OCTETS_MAX:
        return content
    from edgestead.model.records import parse
    from edgestead.model.records.txt import TXT
    from edgestead.model.refusals import EdgeError

    try:
        read = parse("TXT", content=content)
    except EdgeError:
        return content  # the server says what is wrong with it
    assert isinstance(read, TXT)
    if any(len(one) != TXT_STRING_OCTETS_MAX for one in read.strings[:-1]):
        return read.to_content()
    text = read.text.decode(errors="surrogateescape")
    return text if _is_bare(text) else read.to_content()


def _is_bare(text: str) -> bool:
    return bool(text) and text.isprintable() and not set(text) & _MARKS


def setting_form(value: Any) -> Any:
    """The value of a setting; members that are null say nothing, and TOML has none."""
    if isinstance(value, dict):
        return {name: setting_form(one) for name, one in value.items() if one is not None}
    return value


def rule_form(rule: Mapping[str, Any]) -> Json:
    """A rule of an answer or a file as the document has it; a `ref` that is its id says nothing."""
    form = {member: rule[member] for member in RULE_MEMBERS if rule.get(member) not in (None, {})}
    if form.get("ref") == rule.get("id"):
        form.pop("ref", None)
    if form.get("action") == "skip" and form.get("logging") == {"enabled": True}:
        del form["logging"]
    for member, defaults in RULE_PART_DEFAULTS.items():
        if isinstance(part := form.get(member), dict):
            form[member] = {key: one for key, one in part.items() if defaults.get(key, _NONE) != one}
    return {member: value for member, value in form.items() if RULE_DEFAULTS.get(member, _NONE) != value}


def ruleset_form(ruleset: Mapping[str, Any]) -> Json:
    """A custom ruleset of an answer or a file, whose rules are in their form already."""
    form: Json = {"name": ruleset["name"], "phase": word_of(ruleset["phase"])}
    if ruleset.get("description"):
        form["description"] = ruleset["description"]
    return {**form, "rules": ruleset["rules"]}


def ruleset_name(ruleset: Mapping[str, Any]) -> str:
    """As rules of a document name it."""
    return f"{ruleset['phase']}/{ruleset['name']}"


_NONE = object()
