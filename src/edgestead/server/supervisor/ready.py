"""What a server that answers tells the world: its addresses and how to be let in.

Owns  the ready-file's keys.
Not   when: the supervisor.
"""

import os
from pathlib import Path

import msgspec

from edgestead.config import Config
from edgestead.server import files
from edgestead.server.credentials import Credentials
from edgestead.server.folder import State
from edgestead.server.supervisor.listeners import Listeners, bound_address


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The ready-file. Addresses of parts that are not built are null. `pid` is the supervisor's."""

    api_base: str
    dns: str
    http: str | None
    https: str | None
    dot: str | None
    doh: str | None
    objects: str | None
    account_id: str
    email: str
    api_key: str
    api_token: str
    pid: int


def state_of(listeners: Listeners, runtime_dir: Path, config: Config) -> State:
    return State(
        pid=os.getpid(),
        runtime_dir=str(runtime_dir),
        api_base=f"http://{bound_address(listeners.api)}/client/v4",
        dns=str(bound_address(listeners.dns_tcp)),
        http=str(bound_address(listeners.http)),
        https=str(bound_address(listeners.https)) if listeners.https else None,
        dot=str(bound_address(listeners.dot)) if listeners.dot else None,
        doh=str(bound_address(listeners.doh)) if listeners.doh else None,
        objects=str(bound_address(listeners.objects)) if listeners.objects else None,
        tls_dir=str(config.tls_dir.absolute()) if config.tls_dir else None,
        api_host=listeners.api.getsockname()[0],
        dns_host=listeners.dns_tcp.getsockname()[0],
        dns_rate=config.dns_rate,
        dns_identity=config.dns_identity,
        nameserver_addresses=tuple(map(str, config.nameserver_addresses)),
    )


def ready_of(state: State, credentials: Credentials) -> Ready:
    return Ready(
        api_base=state.api_base,
        dns=state.dns,
        http=state.http,
        https=state.https,
        dot=state.dot,
        doh=state.doh,
        objects=state.objects,
        account_id=credentials.account_id,
        email=credentials.email,
        api_key=credentials.api_key,
        api_token=credentials.api_token,
        pid=state.pid,
    )


def node_ready_of(state: State) -> Ready:
    """Of a node without control: there is nothing to be let in to."""
    return ready_of(state, Credentials(account_id="", email="", api_key="", api_token=""))


def write(path: Path, ready: Ready) -> None:
    """Put the ready-file in place. Raises OSError."""
    files.replace_private(path, msgspec.json.format(msgspec.json.encode(ready)) + b"\n")
