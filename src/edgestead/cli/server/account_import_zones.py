"""Zones of another server: themselves, their records and settings.

Owns  what of each is brought over, and when it counts as being here; sending one thing after another.
Not   rulesets (`cli.server.account_import_rulesets`), values of namespaces
      (`cli.server.account_import_values`). Imports click and the standard library only.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgestead.cli.failure import Failed
from edgestead.cli.http import Api, Refused, segment
from edgestead.cli.progress import Progress
from edgestead.cli.server.account_import_report import Report
from edgestead.cli.target import Json, whole_list

if TYPE_CHECKING:
    from edgestead.cli.server.account_import_rulesets import RulesetImport

ZONES_PER_PAGE = 50  # what the smallest of the servers gives
RECORDS_PER_BATCH = 200
RECORD_MEMBERS = (
    *("type", "name", "content", "data", "ttl", "proxied", "priority"),
    *("comment", "tags", "settings"),
)
# What tells records of one name apart; a comment that differs makes no second record.
IDENTITY = ("type", "name", "content", "priority")
DNS_SETTINGS = ("flatten_all_cnames", "multi_provider", "ns_ttl")
VIEWS = {"cname_flattening": "flatten_all_cnames"}  # a zone setting that is an older view of a DNS setting
_OWN_TYPES = ("SOA",)  # each server makes its own
ABSENT = frozenset({400, 403, 404, 405, 410})  # of a part that the other server does not offer, or not to us


def import_zones(
    there: Api,
    here: Api,
    their_account: str,
    our_account: str,
    names: Sequence[str],
    wanted: frozenset[str],
    report: Report,
    rulesets: "RulesetImport | None",
) -> None:
    """Every zone of their account, or those that are named. Raises Failed."""
    query: dict[str, object] = {"account.id": their_account, "per_page": ZONES_PER_PAGE}
    found = {zone["name"]: zone for zone in whole_list(there, "/zones", query)}
    if unknown := set(names) - found.keys():
        raise Failed(f"There is no zone {', '.join(sorted(unknown))} at {there.source.api_base}.")
    chosen = [found[name] for name in (names or sorted(found))]
    with Progress("Zones", "zones", len(chosen)) as progress:
        for zone in chosen:
            if zone.get("type") == "secondary":  # its records are its primary's: `account_import_left` says
                progress.advance(1, 1)
                continue
            zone_id = _import_zone(there, here, our_account, zone, wanted, report)
            if rulesets is not None and (zone_id is not None or report.dry_run):
                path = None if zone_id is None else f"/zones/{zone_id}"
                rulesets.entry_points(f"/zones/{zone['id']}", path, zone["name"])
            progress.advance(1, 1)


def _import_zone(
    there: Api, here: Api, our_account: str, zone: Json, wanted: frozenset[str], report: Report
) -> str | None:
    """Its id here; None where it was refused, or would be made."""
    name = zone["name"]
    ours = here.call("GET", "/zones", query={"name": name})["result"]
    zone_id = ours[0]["id"] if ours else None
    if zone_id is not None:
        report.was_there("zones")
    elif "zones" not in wanted:
        raise Failed(f"The zone {name} is not here yet.", "Import it with `--only zones` too.")
    elif report.dry_run:
        report.made("zones")
    else:
        body = {"name": name, "account": {"id": our_account}, "type": "full"}
        try:
            zone_id = here.call("POST", "/zones", json_body=body, repeat=False)["result"]["id"]
        except Refused as refusal:
            report.refuse(f"zone {name}", refusal)
            return None
        report.made("zones")
    if "records" in wanted:
        _import_records(there, here, zone["id"], zone_id, name, report)
    if "settings" in wanted:
        _import_settings(there, here, zone["id"], zone_id, name, report)
    return zone_id


def _import_records(
    there: Api, here: Api, their_id: str, our_id: str | None, name: str, report: Report
) -> None:
    found = (
        record
        for record in whole_list(there, f"/zones/{their_id}/dns_records", {})
        if record["type"] not in _OWN_TYPES
    )
    path = f"/zones/{our_id}/dns_records"
    present = set() if our_id is None else {_identity(record) for record in whole_list(here, path, {})}
    missing: list[Json] = []
    for record in found:
        if _identity(record) in present:
            report.was_there("records")
        elif record.get("locked") or (record["type"] == "NS" and record["name"] == name):
            continue  # made by the server itself: its own name servers
        else:
            missing.append(_record_body(record))
    if report.dry_run:
        report.made("records", len(missing))
        return
    # An alias may stand beside nothing, DS below NS: the order of types that every zone takes.
    missing.sort(key=lambda body: (body["type"] == "DS", body["type"] != "NS"))
    with Progress(f"Records of {name}", "records", len(missing)) as progress:
        for batch in _portions(missing, RECORDS_PER_BATCH):
            _post_records(here, path, name, batch, report)
            progress.advance(len(batch), len(batch))


def _post_records(here: Api, path: str, name: str, batch: Sequence[Json], report: Report) -> None:
    """All of a portion at once; when one of them is refused, each for itself."""
    try:
        here.call("POST", f"{path}/batch", json_body={"posts": list(batch)}, repeat=False)
        report.made("records", len(batch))
        return
    except Refused:
        pass
    for body in batch:
        try:
            here.call("POST", path, json_body=body, repeat=False)
            report.made("records")
        except Refused as refusal:
            what = f"record {body['name']} {body['type']} {body.get('content', '')} of {name}"
            report.refuse(what, refusal)


def _identity(record: Json) -> tuple[Any, ...]:
    return tuple(record.get(member) for member in IDENTITY)


def _record_body(record: Json) -> Json:
    """What a record is made with: `data` where there is some, since both say the same."""
    body = {member: record[member] for member in RECORD_MEMBERS if record.get(member) not in (None, [], {})}
    if "data" in body:
        body.pop("content", None)
        if "priority" in body["data"]:  # of SRV; a URI record has it beside its data
            body.pop("priority", None)
    return body


def _import_settings(
    there: Api, here: Api, their_id: str, our_id: str | None, name: str, report: Report
) -> None:
    theirs = {one["id"]: one for one in optional(there, f"/zones/{their_id}/settings") or ()}
    if our_id is None:  # a dry run: what nobody changed there is what a new zone has
        report.made("settings", sum(1 for one in theirs.values() if one.get("modified_on")))
        return
    dns = _import_dns_settings(there, here, their_id, our_id, name, report)
    ours = {one["id"]: one for one in here.call("GET", f"/zones/{our_id}/settings")["result"]}
    for id_, setting in theirs.items():
        if id_ not in ours or not setting.get("editable", True) or VIEWS.get(id_) in dns:
            continue
        value = setting.get("value", setting.get("enabled"))  # ssl_recommender may have the latter alone
        if ours[id_]["value"] == value:
            report.was_there("settings")
            continue
        path, body = f"/zones/{our_id}/settings/{segment(id_)}", {"value": value}
        put(here, "PATCH", path, body, f"setting {id_} of {name}", "settings", report)


def _import_dns_settings(
    there: Api, here: Api, their_id: str, our_id: str, name: str, report: Report
) -> frozenset[str]:
    """Those that the other server has."""
    theirs = optional(there, f"/zones/{their_id}/dns_settings")
    if not isinstance(theirs, dict):
        return frozenset()
    path = f"/zones/{our_id}/dns_settings"
    ours = here.call("GET", path)["result"]
    known = [member for member in DNS_SETTINGS if member in theirs]
    for member in known:
        if theirs[member] == ours.get(member):
            report.was_there("settings")
        else:
            body = {member: theirs[member]}
            put(here, "PATCH", path, body, f"{member} of {name}", "settings", report)
    return frozenset(known)


def put(here: Api, method: str, path: str, body: Json, what: str, kind: str, report: Report) -> Json | None:
    """Send it, and report what became of it. The answer's result; None in a dry run, and of a refusal."""
    if report.dry_run:
        report.made(kind)
        return None
    try:
        answer: Json = here.call(method, path, json_body=body)["result"]
    except Refused as refusal:
        report.refuse(what, refusal)
        return None
    report.made(kind)
    return answer


def optional(server: Api, path: str) -> Any:
    """What is at a path; None where the server does not offer it."""
    try:
        return server.call("GET", path)["result"]
    except Refused as refusal:
        if refusal.status in ABSENT:
            return None
        raise


def _portions(items: Sequence[Json], size: int) -> Iterator[Sequence[Json]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
