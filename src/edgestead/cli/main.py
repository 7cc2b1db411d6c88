"""The command edgecli: its groups by name, each imported only when it is called.

Owns  the list of commands, and how a failure of any of them reads.
Asks  the modules in COMMANDS.
Tells the shell through exit codes: 0 done, 1 could not, 2 was called wrongly.
Not   what a command does. Imports click and the standard library only, because `edgecli kv` starts here.
"""

import sys

import click

from edgestead import __version__
from edgestead.cli.lazy import Lazy, LazyGroup

COMMANDS: dict[str, Lazy] = {
    "serve": Lazy("edgestead.cli.serve", "serve", "Run the server."),
    "env": Lazy(
        "edgestead.cli.env", "env", "Print a running server's addresses and credentials for a shell."
    ),
    "credentials": Lazy(
        "edgestead.cli.credentials", "credentials", "Renew the key and token in the data folder."
    ),
    "kv": Lazy("edgestead.cli.kv", "kv", "Read and write the key-value store."),
    "waf": Lazy(
        "edgestead.cli.waf", "waf", "Show and set a zone's use of the managed OWASP ruleset; its events."
    ),
    "ruleset": Lazy("edgestead.cli.ruleset", "ruleset", "List, print and check rulesets."),
    "zone": Lazy("edgestead.cli.zone", "zone", "Create, list, import and export zones; their history."),
    "record": Lazy("edgestead.cli.record", "record", "Create, list, change and delete DNS records."),
    "token": Lazy("edgestead.cli.token", "token", "Create, list, roll and delete API tokens."),
    "dns": Lazy("edgestead.cli.dns", "dns", "Ask the running DNS server what it answers, and check a zone."),
    "tls": Lazy("edgestead.cli.tls", "tls", "Make certificates for development."),
    "doctor": Lazy("edgestead.cli.doctor", "doctor", "Examine this machine and the server that runs on it."),
    "deprecations": Lazy(
        "edgestead.cli.deprecations", "deprecations", "Find what a client uses that a date ended."
    ),
    "object": Lazy("edgestead.cli.object", "object_", "List, call, query, copy and mend stateful objects."),
    "import": Lazy(
        "edgestead.cli.account_import", "import_account", "Bring an account over from another server."
    ),
    "backup": Lazy("edgestead.cli.backup", "backup", "Copy everything that a server keeps, while it runs."),
    "restore": Lazy("edgestead.cli.backup", "restore", "Make a data folder of a backup."),
    "verify": Lazy("edgestead.cli.backup", "verify", "Examine a data folder or a backup."),
    "objects": Lazy("edgestead.cli.objects", "objects", "Help with writing classes of stateful objects."),
    "completion": Lazy(
        "edgestead.cli.completion", "completion", "Print the script that completes commands in a shell."
    ),
}
# The spelling before 3.60.0, taken until the next major version and not listed.
OLD_COMMANDS: dict[str, Lazy] = {
    "kv:namespace": Lazy("edgestead.cli.kv", "kv_namespace", "Now `edgecli kv namespace`."),
    "kv:key": Lazy("edgestead.cli.kv", "kv_key", "Now `edgecli kv key`."),
    "kv:bulk": Lazy("edgestead.cli.kv", "kv_bulk", "Now `edgecli kv bulk`."),
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
