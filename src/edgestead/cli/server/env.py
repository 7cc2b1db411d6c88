"""`edgecli env`: a running server's addresses and credentials as shell exports.

Owns  the names of the variables.
Not   making or renewing anything.
"""

import shlex
from pathlib import Path

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

# Variable, and the member of the ready-file that it holds. The second group is what clients of the
# compatible API read; the key pair is not in it, because several clients refuse a token beside a key.
VARIABLES = (
    ("EDGE_API_BASE", "api_base"),
    ("EDGE_DNS_ADDR", "dns"),
    ("EDGE_HTTP_ADDR", "http"),
    ("EDGE_HTTPS_ADDR", "https"),
    ("EDGE_OBJECTS_ADDR", "objects"),
    ("EDGE_ACCOUNT_ID", "account_id"),
    ("EDGE_EMAIL", "email"),
    ("EDGE_KEY", "api_key"),
    ("EDGE_TOKEN", "api_token"),
    ("EDGE_PID", "pid"),
    ("CLOUDFLARE_BASE_URL", "api_base"),
    ("CLOUDFLARE_API_BASE_URL", "api_base"),
    ("CLOUDFLARE_API_TOKEN", "api_token"),
    ("CLOUDFLARE_ACCOUNT_ID", "account_id"),
)


@click.command(cls=Command, short_help="Print a running server's addresses and credentials for a shell.")
@folder_options
@JSON
def env(data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print the addresses and credentials of a running server as shell exports. They hold secrets.

    \b
      eval "$(edgecli env)"
      edgecli env --json
    """
    from edgestead.server import credentials
    from edgestead.server.errors import StartError
    from edgestead.server.folder import read_state
    from edgestead.server.supervisor import admin, ready

    folder = data_dir(data_dir_given, config_file)
    try:
        state, kept = read_state(folder), credentials.read(folder)
    except StartError as error:
        raise Failed(f"{error}.") from None
    if state is None or kept is None or not admin.is_served(state.admin_socket):
        raise Failed(f"No server is running on the data folder {folder}.", "`edgecli serve` starts one.")
    facts = ready.ready_of(state, kept)
    values = {variable: getattr(facts, member) for variable, member in VARIABLES}
    known = {variable: str(value) for variable, value in values.items() if value is not None}
    lines = (f"export {variable}={shlex.quote(value)}" for variable, value in known.items())
    show_lines(known, *lines, as_json=as_json)
