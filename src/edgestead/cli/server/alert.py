"""`edgecli alert`: what receivers of alerts were sent, and whether they take messages.

Owns  arguments and output of the three commands.
Not   sending: the server's process does, with the rights and the network that it has.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgestead.cli.failure import Failed
from edgestead.cli.folder import data_dir, folder_options
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

if TYPE_CHECKING:
    from edgestead.server.alerts.state_file import AlertsState, Sent

_OPEN_HEADS = ("receiver", "state", "check", "since", "message")
_SENT_HEADS = ("time", "receiver", "outcome", "message")


@click.group(short_help="Show alerts that were sent, and try a receiver.")
def alert() -> None:
    """Show alerts that were sent, and try a receiver.

    Receivers are tables [[alert]] in the server's configuration.

    \b
      edgecli alert test ops
      edgecli alert list
    """


@alert.command(cls=Command, short_help="Send a message to a receiver now.")
@click.argument("receiver", metavar="NAME")
@folder_options
@JSON
def test(receiver: str, data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """Have the running server send a message to the receiver NAME, and wait until it took it.

    \b
      edgecli alert test ops
    """
    from edgestead.server.errors import StartError
    from edgestead.server.folder import read_state
    from edgestead.server.supervisor import admin

    folder = data_dir(data_dir_given, config_file)
    state = read_state(folder)
    if state is None or not admin.is_served(state.admin_socket):
        raise Failed(f"No server runs on the data folder {folder}.", "`edgecli serve` starts one.")
    known = _stored(folder).receivers
    if receiver not in known:
        named = ", ".join(known) or "none"
        raise Failed(
            f"The server has no receiver {receiver}. It has: {named}.", "The table [[alert]] makes one."
        )
    try:
        admin.ask(state.alerts_socket, f"test {receiver}", TEST_SECONDS)
    except (StartError, OSError) as error:
        raise Failed(f"The message was not delivered: {error}.") from None
    show_lines({"receiver": receiver, "outcome": "taken"}, f"{receiver} took the message.", as_json=as_json)


TEST_SECONDS = 60.0  # more than one delivery may take; another one may be under way


@alert.command("list", cls=Command, short_help="List alerts that are not over.")
@folder_options
@JSON
def list_alerts(data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """List what each receiver was sent, or is to be sent, and is not over; and receivers that fail.

    \b
      edgecli alert list --json
    """
    import msgspec

    from edgestead.cli.table import echo_table, show

    stored = _stored(data_dir(data_dir_given, config_file))
    show(
        msgspec.to_builtins(stored.receivers),
        lambda: echo_table(_OPEN_HEADS, _lines(stored), none="No alert is open."),
        as_json=as_json,
    )


@alert.command(cls=Command, short_help="List the messages that were sent.")
@folder_options
@JSON
def history(data_dir_given: str | None, config_file: Path | None, as_json: bool) -> None:
    """List the last 200 messages, the newest last, and the first failure of each receiver that failed.

    \b
      edgecli alert history
    """
    import msgspec

    from edgestead.cli.table import echo_table, show

    sent = _stored(data_dir(data_dir_given, config_file)).history
    show(
        msgspec.to_builtins(sent),
        lambda: echo_table(_SENT_HEADS, map(_cells, sent), none="Nothing was sent yet."),
        as_json=as_json,
    )


def _stored(folder: Path) -> "AlertsState":
    from edgestead.server.alerts import state_file

    return state_file.read(folder)


def _lines(stored: "AlertsState") -> Iterator[tuple[str, ...]]:
    from edgestead.cli.output import iso_time

    for name, receiver in stored.receivers.items():
        if receiver.error:
            since = iso_time(receiver.failing_since_us // 1_000_000)
            yield name, "failing", "-", since, receiver.error
        for one in receiver.alerts:
            since = iso_time(one.row.since_us // 1_000_000)
            yield name, one.state, one.row.key, since, one.row.message


def _cells(sent: "Sent") -> tuple[str, ...]:
    from edgestead.cli.output import iso_time

    words = f"{sent.words}: {sent.error}" if sent.error else sent.words
    return iso_time(sent.time_us // 1_000_000), sent.receiver, sent.outcome, words
