"""`edgecli dashboard`: a link that signs a browser in, once.

Owns  arguments and output of the command.
Not   the pages.
"""

from pathlib import Path
from urllib.parse import urlsplit

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command


@click.command("dashboard", cls=Command)
@click.option("--open", "opens", is_flag=True, help="Open it in this machine's browser.")
@folder_options
@JSON
def dashboard(opens: bool, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Print a link to the dashboard of this machine's server. It signs one browser in, within two minutes.

    Through SSH: forward the API's port (`ssh -L 8787:127.0.0.1:8787 HOST`), and open the link here.

    \b
      edgecli dashboard --open
    """
    link = link_of(data_dir(data_dir_given, config_file))
    show_lines({"link": link}, link, as_json=as_json)
    if opens:
        click.launch(link)


def link_of(folder: Path) -> str:
    """A link that signs one browser in to the server that runs on a folder. Raises Failed."""
    import msgspec

    from edgestead.server.errors import StartError
    from edgestead.server.folder import read_state
    from edgestead.server.supervisor import admin

    try:
        state = read_state(folder)
        if state is None:
            raise Failed(f"No server is running on the data folder {folder}.", "`edgecli serve` starts one.")
        code = msgspec.json.decode(admin.ask(state.admin_socket, "dashboard"))
    except (StartError, OSError) as error:
        raise Failed(f"The server gives no link: {error}.") from None
    base = urlsplit(state.api_base)
    return f"{base.scheme}://{base.netloc}/ui/enter?code={code}"
