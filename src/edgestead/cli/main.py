"""The command edgecli: its groups by name, each imported only when it is called.

Owns  the list of commands, and how a failure of any of them reads.
Not   what a command does. Imports click and the standard library only, because `edgecli kv` starts here.
"""

import sys

import click

from edgestead import __version__
from edgestead.cli.lazy import Lazy, LazyGroup

COMMANDS: dict[str, Lazy] = {
    "serve": Lazy("edgestead.cli.server.serve", "serve", "Run the server."),
    "demo": Lazy("edgestead.cli.server.demo", "demo", "Try a server that leaves nothing behind."),
    "init": Lazy("edgestead.cli.server.init", "init", "Write a configuration, units and a backup timer."),
    "dashboard": Lazy(
        "edgestead.cli.server.dashboard", "dashboard", "Print a link to the dashboard of the running server."
    ),
    "env": Lazy(
        "edgestead.cli.server.env", "env", "Print a running server's addresses and credentials for a shell."
    ),
    "credentials": Lazy(
        "edgestead.cli.server.credentials", "credentials", "Renew the key and token in the data folder."
    ),
    "kv": Lazy("edgestead.cli.kv.commands", "kv", "Read and write the key-value store."),
    "waf": Lazy(
        "edgestead.cli.waf.commands",
        "waf",
        "Show and set a zone's use of the managed OWASP ruleset; its events.",
    ),
    "rule": Lazy("edgestead.cli.rule.commands", "rule", "List, add, edit, move, remove and try rules."),
    "ruleset": Lazy("edgestead.cli.rule.rulesets", "ruleset", "List, print and check rulesets."),
    "certificate": Lazy(
        "edgestead.cli.zone.certificate", "certificate", "List, renew, upload and remove certificates."
    ),
    "setting": Lazy("edgestead.cli.zone.setting", "setting", "Show and set what a zone is set to."),
    "zone": Lazy(
        "edgestead.cli.zone.commands", "zone", "Create, list, import and export zones; their history."
    ),
    "record": Lazy("edgestead.cli.zone.record", "record", "Create, list, change and delete DNS records."),
    "member": Lazy(
        "edgestead.cli.server.member_commands", "member", "Invite people, and say what they may do."
    ),
    "account": Lazy("edgestead.cli.server.member_commands", "account", "List and create accounts."),
    "audit": Lazy("edgestead.cli.server.audit", "audit", "Show who changed what, and export it."),
    "token": Lazy("edgestead.cli.server.token", "token", "Create, list, roll and delete API tokens."),
    "dns": Lazy(
        "edgestead.cli.zone.dns", "dns", "Ask the running DNS server what it answers, and check a zone."
    ),
    "tls": Lazy("edgestead.cli.server.tls", "tls", "Take over certificates, or make them for development."),
    "doctor": Lazy(
        "edgestead.cli.server.doctor", "doctor", "Examine this machine and the server that runs on it."
    ),
    "alert": Lazy("edgestead.cli.server.alert", "alert", "Show alerts that were sent, and try a receiver."),
    "status": Lazy("edgestead.cli.server.status", "status", "Show the health of the running server."),
    "top": Lazy("edgestead.cli.server.top", "top", "Show what the running server does, second by second."),
    "logs": Lazy("edgestead.cli.server.logs", "logs", "Show the server's log, and follow it."),
    "deprecations": Lazy(
        "edgestead.cli.dated.commands", "deprecations", "Find what a client uses that a date ended."
    ),
    "object": Lazy(
        "edgestead.cli.object.commands", "object_", "List, call, query, copy and mend stateful objects."
    ),
    "export": Lazy("edgestead.cli.state.commands", "export", "Print zones, rules and settings as one file."),
    "plan": Lazy("edgestead.cli.state.commands", "plan", "Show what a file would change."),
    "apply": Lazy("edgestead.cli.state.commands", "apply", "Make a server what a file says."),
    "diff": Lazy("edgestead.cli.state.commands", "diff", "Compare files, servers and name servers."),
    "import": Lazy(
        "edgestead.cli.server.account_import", "import_account", "Bring an account over from another server."
    ),
    "backup": Lazy(
        "edgestead.cli.server.backup", "backup", "Copy everything that a server keeps, while it runs."
    ),
    "restore": Lazy("edgestead.cli.server.backup", "restore", "Make a data folder of a backup."),
    "verify": Lazy("edgestead.cli.server.backup", "verify", "Examine a data folder or a backup."),
    "objects": Lazy(
        "edgestead.cli.object.classes", "objects", "Help with writing classes of stateful objects."
    ),
    "cluster": Lazy(
        "edgestead.cli.cluster.commands", "cluster", "Make a cluster of several machines, and operate it."
    ),
    "completion": Lazy(
        "edgestead.cli.completion", "completion", "Print the script that completes commands in a shell."
    ),
}
# The spelling before 3.60.0, taken until the next major version and not listed.
OLD_COMMANDS: dict[str, Lazy] = {
    "kv:namespace": Lazy("edgestead.cli.kv.commands", "kv_namespace", "Now `edgecli kv namespace`."),
    "kv:key": Lazy("edgestead.cli.kv.commands", "kv_key", "Now `edgecli kv key`."),
    "kv:bulk": Lazy("edgestead.cli.kv.commands", "kv_bulk", "Now `edgecli kv bulk`."),
}


def _print_version(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    """Not click's own option: that reads the version from importlib.metadata, 30 ms later."""
    if asked:
        click.echo(f"edgecli {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    unlisted=OLD_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version.",
)
def cli() -> None:
    """Edgestead: an edge platform that you run yourself."""


def main() -> None:
    """Run the command line of this process and exit."""
    sys.exit(cli.main(prog_name="edgecli", standalone_mode=True))
