"""`edgecli import`: bring an account over from another server of this API.

Owns  arguments, options, order and output of the command.
Not   what a server may hold. Imports click and the standard library only.

Nothing is remembered between two runs: each looks at what is here already and does the rest, so a run that
was interrupted is run again. Nothing here is deleted, and nothing at all is changed there.
"""

import os
from collections.abc import Mapping

import click

from edgestead.cli.failure import Failed
from edgestead.cli.http import ELSEWHERE, Api, account_of
from edgestead.cli.server.account_import_left import left_behind, signed_there, tokens_left
from edgestead.cli.server.account_import_report import Report
from edgestead.cli.server.account_import_rulesets import RulesetImport
from edgestead.cli.server.account_import_values import import_namespaces
from edgestead.cli.server.account_import_zones import ZONES_PER_PAGE, import_zones
from edgestead.cli.source import Source, header_value
from edgestead.cli.target import JSON, Command, api, whole_list

KINDS = ("zones", "records", "settings", "rulesets", "values")
TOKEN, EMAIL, KEY = "IMPORT_TOKEN", "IMPORT_EMAIL", "IMPORT_KEY"


@click.command("import", cls=Command)
@click.option("base", "--from", metavar="URL", required=True, help="The other API, up to /client/v4.")
@click.option("--account", metavar="ID", help="The account there; needed when its credentials see several.")
@click.option("zones", "--zone", metavar="NAME", multiple=True, help="Only this zone; may be repeated.")
@click.option("kinds", "--only", type=click.Choice(KINDS), multiple=True, help="Only this; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@JSON
def import_account(
    base: str,
    account: str | None,
    zones: tuple[str, ...],
    kinds: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring zones, records, settings, rulesets, namespaces and their values over from another server.

    The credentials for it are read from the environment, and go to it only: IMPORT_TOKEN (reading is enough),
    or IMPORT_EMAIL and IMPORT_KEY. What is here already stays as it is; run it again and it goes on where it
    ended.

    \b
      export IMPORT_TOKEN=…
      edgecli import --from https://api.example.net/client/v4 --dry-run
      edgecli import --from https://api.example.net/client/v4 --zone example.com
      edgecli import --from https://api.example.net/client/v4 --only values
    """
    here = api()
    there = Api(source_of(base, os.environ))
    click.get_current_context().call_on_close(there.close)
    wanted = frozenset(kinds or KINDS)
    report = Report(dry_run)
    theirs, ours = account_of(there, account), account_of(here, None)
    with report.told(as_json=as_json):
        rulesets = None
        if "rulesets" in wanted:
            rulesets = RulesetImport(there, here, f"/accounts/{theirs}", f"/accounts/{ours}", report)
        if wanted & {"zones", "records", "settings", "rulesets"}:
            import_zones(there, here, theirs, ours, zones, wanted, report, rulesets)
        if rulesets is not None and not zones:
            rulesets.account()
        if "values" in wanted and not zones:
            import_namespaces(there, here, theirs, ours, report)
        if not kinds:
            query: dict[str, object] = {"account.id": theirs, "per_page": ZONES_PER_PAGE}
            chosen = [one for one in whole_list(there, "/zones", query) if not zones or one["name"] in zones]
            report.left += left_behind(there, theirs, chosen)
            report.left += () if zones else tokens_left(there, theirs)
            report.left += signed_there(there, chosen)
    if report.refused:
        raise SystemExit(1)


def source_of(base: str, environ: Mapping[str, str]) -> Source:
    if token := environ.get(TOKEN):
        return Source(ELSEWHERE, base, {"Authorization": f"Bearer {header_value(TOKEN, token)}"}, None)
    email, key = environ.get(EMAIL), environ.get(KEY)
    if not email or not key:
        raise Failed(
            f"There are no credentials for {base} in the environment.",
            f"Set {TOKEN}, or {EMAIL} and {KEY}.",
        )
    headers = {"X-Auth-Email": header_value(EMAIL, email), "X-Auth-Key": header_value(KEY, key)}
    return Source(ELSEWHERE, base, headers, None)
