"""`edgecli dashboard`: a link that signs a browser in, once.

Owns  arguments and output of the command.
Not   the pages.
"""

from pathlib import Path
from urllib.parse import urlsplit

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.target import Command


@click.command("dashboard", cls=Command)
@click.option("--open", "opens", is_flag=True, help="Open it in this machine's browser.")
@folder_options
def dashboard(opens: bool, data_dir_given: str | None, config_file: Path | None) -> None:
    """Print a link to the dashboard of this machine's server. It signs one browser in, within two minutes.

    Through SSH: forward the API's port (`ssh -L 8787:127.0.0.1:8787 HOST`), and open the link here.
    """
    import msgspec

    from edgestead.server.errors import StartError
    from edgestead.server.folder import read_state
    from edgestead.server.supervisor import admin

    folder = data_dir(data_dir_given, config_file)
    try:
        state = read_state(folder)
        if state is None:
            raise Failed(f"No server is running on the data folder {folder}.", "`edgecli serve` starts one.")
        code = msgspec.json.decode(admin.ask(state.admin_socket, "dashboard"))
    except (StartError, OSError) as error:
        raise Failed(f"The server gives no link: {error}.") from None
    base = urlsplit(state.api_base)
    link = f"{base.scheme}://{base.netloc}/ui/enter?code={code}"
    click.echo(link)
    if opens:
        click.launch(link)
