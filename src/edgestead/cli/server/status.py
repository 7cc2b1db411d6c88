"""`edgecli status`: the health of the running server, row by row.

Owns  arguments and output.
Not   what is examined (`health.checks`); this machine and the zones (`edgecli doctor`).
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.target import JSON, Command

if TYPE_CHECKING:
    from edgestead.health.rows import Row

_HEADS = ("state", "check", "since", "message")


@click.command(cls=Command, short_help="Show the health of the running server.")
@folder_options
@JSON
def status(data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Show the health of the server that runs on a data folder: the rows of /health/ready.

    Ends with 1 when a row fails. `edgecli doctor` looks at this machine and at the zones, too.

    \b
      edgecli status --json
    """
    import msgspec

    from edgestead.cli.table import echo_table, show
    from edgestead.server.folder import read_state
    from edgestead.server.health.asking import rows_of_control, rows_without_control
    from edgestead.server.supervisor import admin

    folder = data_dir(data_dir_given, config_file)
    state = read_state(folder)
    if state is None or not admin.is_served(state.admin_socket):
        raise Failed(f"No server runs on the data folder {folder}.", "`edgecli serve` starts one.")
    rows = rows_of_control(state.admin_socket)
    if rows is None:
        rows = rows_without_control(folder, {})
    show(msgspec.to_builtins(rows), lambda: echo_table(_HEADS, map(_cells, rows)), as_json=as_json)
    if any(row.state == "fail" for row in rows):
        raise SystemExit(1)


def _cells(row: "Row") -> tuple[str, ...]:
    from edgestead.cli.output import iso_time

    return row.state, row.key, iso_time(row.since_us // 1_000_000), row.sentence
