"""The pages of the dashboard, a row each."""

from edgestead.web.pages import events, overview, records, rules, tokens, values, zones
from edgestead.web.visit import ROOT, Row

PAGES = (
    Row(ROOT, overview.show),
    Row(f"{ROOT}/zones", zones.show_all, zones.create),
    Row(f"{ROOT}/zones/{{zone}}", records.show, records.add),
    Row(f"{ROOT}/zones/{{zone}}/records/{{record}}", records.show_one, records.change),
    Row(f"{ROOT}/zones/{{zone}}/history", zones.history, zones.take_back),
    Row(f"{ROOT}/zones/{{zone}}/settings", zones.settings, zones.set_one),
    Row(f"{ROOT}/zones/{{zone}}/rules", rules.show, rules.change),
    Row(f"{ROOT}/zones/{{zone}}/events", events.show),
    Row(f"{ROOT}/zones/{{zone}}/events/{{event}}", events.show_one, events.allow),
    Row(f"{ROOT}/values", values.show_all, values.create),
    Row(f"{ROOT}/values/{{namespace}}", values.show, values.put),
    Row(f"{ROOT}/values/{{namespace}}/{{key}}", values.show_one, values.change),
    Row(f"{ROOT}/tokens", tokens.show, tokens.revoke),
)
