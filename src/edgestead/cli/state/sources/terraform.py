"""What a Terraform state holds of the provider of this API: zones, records, settings, rulesets, namespaces.

Owns  resources of its versions 4 and 5 as parts of a document.
Not   configuration files: `terraform show -json` and a state name what is there.

A state manages what it names and nothing else, so its records are RRsets of a zone, not all of it.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from edgestead.cli.failure import Failed
from edgestead.cli.rule.names import Names, newest
from edgestead.cli.rule.phases import word_of
from edgestead.cli.state.document import RECORD_MEMBERS, Json, rule_form, ruleset_form
from edgestead.cli.state.sources import files
from edgestead.cli.state.sources.gathered import Gathered, text_of
from edgestead.model.rule_members import sent_back

Resource = tuple[str, str, Json]
PREFIX = "cloudflare_"
# Blocks, which version 4 writes as lists of one.
_BLOCKS = frozenset(
    {
        *(
            "action_parameters",
            "ratelimit",
            "logging",
            "exposed_credential_check",
            "from_value",
            "target_url",
        ),
        *("uri", "path", "query", "origin", "sni", "overrides", "response", "matched_data", "from_list"),
        *("edge_ttl", "browser_ttl", "cache_key", "serve_stale"),
    }
)


def gather(place: str, found: Gathered) -> None:
    """Raises Failed."""
    try:
        state = json.loads(files.text(Path(place)))
        resources = _with_names(list(_resources(state)))
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError) as error:
        raise Failed(f"{place} is no Terraform state: {error}.") from None
    names = {
        values["id"]: text_of(values.get("name") or values.get("zone")).lower()
        for kind, _, values in resources
        if kind == "zone" and values.get("id")
    }
    for kind, address, values in resources:
        take = _TAKEN.get(kind)
        zone = names.get(values.get("zone_id", values.get("id")), "")
        if take is None:
            found.leave(address, "there is nothing in a document for it; its configuration stays yours")
        elif not zone and (kind not in _OF_ACCOUNT or values.get("zone_id")):
            found.leave(address, f"its zone {values.get('zone_id')} is not in this state")
        elif not zone or found.takes(zone):
            take(found, zone, values, address)


def _with_names(resources: list[Resource]) -> list[Resource]:
    """Rules that name custom rulesets of the state by their names here."""
    customs = [values for kind, _, values in resources if kind == "ruleset" and values["kind"] == "custom"]
    names = Names((one for one in customs if one.get("id")), lambda _: ())

    def named(values: Json) -> Json:
        rules = [newest(names.named(_plain(sent_back(rule)))) for rule in values.get("rules") or ()]
        if values.get("id") in names.custom.values():
            return {**values, "rules": rules, "name": names.name(values["id"]).partition("/")[2]}
        return {**values, "rules": rules}

    return [
        (kind, address, named(values) if kind == "ruleset" else values) for kind, address, values in resources
    ]


def _resources(state: Json) -> Iterator[Resource]:
    """(kind without the prefix, address, attributes) of a state, or of what `terraform show -json` prints."""
    if "values" in state:
        modules = [state["values"]["root_module"]]
        while modules:
            module = modules.pop()
            modules += module.get("child_modules", ())
            for one in module.get("resources", ()):
                if one["mode"] == "managed" and one["type"].startswith(PREFIX):
                    yield one["type"].removeprefix(PREFIX), one["address"], one["values"]
        return
    for one in state["resources"]:
        if one["mode"] == "managed" and one["type"].startswith(PREFIX):
            kind, address = one["type"].removeprefix(PREFIX), f"{one['type']}.{one['name']}"
            for instance in one["instances"]:
                yield kind, address, instance["attributes"]


def _zone(found: Gathered, zone: str, values: Json, address: str) -> None:
    held = found.zones.setdefault(zone, {})
    if isinstance(values.get("paused"), bool):
        held["paused"] = values["paused"]


def _record(found: Gathered, zone: str, values: Json, address: str) -> None:
    record = {member: values[member] for member in RECORD_MEMBERS if values.get(member) is not None}
    content = values.get("content") or values.get("value")
    record["content"] = content or _content(text_of(values.get("type")), values.get("data"), address, found)
    if record["content"]:
        found.add_rrset_record(zone, record)


def _content(type_: str, data: Any, address: str, found: Gathered) -> str:
    """The text of a record that is written by its parts. "": it could not be made."""
    from edgestead.model.names import InvalidValue
    from edgestead.model.records import parse
    from edgestead.model.refusals import EdgeError

    parts = data[0] if isinstance(data, list) and data else data
    try:
        rdata = parse(type_, data={name: part for name, part in (parts or {}).items() if part is not None})
    except (EdgeError, InvalidValue, AttributeError) as error:
        found.leave(address, f"its data make no {type_} record: {error}")
        return ""
    priority = "" if rdata.top_priority is None else f"{rdata.top_priority} "
    return priority + rdata.to_content()


def _setting(found: Gathered, zone: str, values: Json, address: str) -> None:
    settings = found.zones.setdefault(zone, {}).setdefault("settings", {})
    settings[values["setting_id"]] = values["value"]


def _settings(found: Gathered, zone: str, values: Json, address: str) -> None:
    named = (values.get("settings") or [{}])[0]
    settings = found.zones.setdefault(zone, {}).setdefault("settings", {})
    settings |= {name: value for name, value in named.items() if value not in (None, "", [], 0)}


def _ruleset(found: Gathered, zone: str, values: Json, address: str) -> None:
    rules = [rule_form(rule) for rule in values["rules"]]
    if values["kind"] == "custom":
        found.rulesets.append(ruleset_form({**values, "rules": rules}))
        return
    for rule in rules:
        found.add_rule(zone, word_of(values["phase"]), rule)


def _plain(value: Any) -> Any:
    """Without what is not set, and with blocks as objects."""
    if isinstance(value, dict):
        members = {
            name: part[0] if name in _BLOCKS and isinstance(part, list) and len(part) == 1 else part
            for name, part in value.items()
        }
        plain = {name: _plain(part) for name, part in members.items()}
        return {name: part for name, part in plain.items() if part not in (None, "", [], {})}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _namespace(found: Gathered, zone: str, values: Json, address: str) -> None:
    found.namespaces.append(values["title"])


_OF_ACCOUNT = frozenset({"workers_kv_namespace", "ruleset"})
_TAKEN: dict[str, Callable[[Gathered, str, Json, str], None]] = {
    "zone": _zone,
    "record": _record,
    "dns_record": _record,
    "zone_setting": _setting,
    "zone_settings_override": _settings,
    "ruleset": _ruleset,
    "workers_kv_namespace": _namespace,
}
