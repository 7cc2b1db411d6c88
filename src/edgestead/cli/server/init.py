"""`edgecli init`: the files that a server on this machine needs, from three questions.

Owns  the questions, what each file says, and that none is overwritten.
Not   installing them: the next steps are printed. The units themselves lie in `units`.
"""

import ipaddress
import sys
import textwrap
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import click

from edgestead.cli.failure import Failed
from edgestead.cli.files import made
from edgestead.cli.table import show_lines
from edgestead.cli.target import JSON, Command

RUNNERS = ("systemd", "compose", "none")
ADDRESS_DEFAULT, NAMES_DEFAULT = "127.0.0.1", ("ns1.edge.internal", "ns2.edge.internal")
_COLUMNS = 100
NAMES_MAX = 13  # as a zone's name servers
_UNITS = Path(__file__).with_name("units")
_EXAMPLE_ADDRESS = "192.0.2.10"  # in the compose file
_EXAMPLE_BIN = "/opt/edgestead/bin/edgecli"
_FILES = {
    "systemd": (
        "edgestead.service",
        "edgestead.socket",
        "edgestead-backup.service",
        "edgestead-backup.timer",
    ),
    "compose": ("compose.yaml",),
    "none": (),
}
_LISTENS = {
    "systemd": 'dns = "[::]:53"\nhttp = "[::]:80"\nhttps = "[::]:443"\n',  # as edgestead.socket
    "compose": "",  # the image says where
    "none": 'dns = "127.0.0.1:5300"\nhttp = "127.0.0.1:8080"\n',
}
_STEPS = {
    "systemd": (
        "install -m 644 {folder}/edgestead.toml /etc/edgestead.toml",
        "install -m 644 {folder}/edgestead*.service {folder}/edgestead*.socket {folder}/edgestead*.timer"
        " /etc/systemd/system/",
        "systemctl daemon-reload",
        "systemctl enable --now edgestead.socket edgestead.service edgestead-backup.timer",
        "export EDGE_DATA_DIR=/var/lib/edgestead && edgecli doctor",
    ),
    "compose": (
        "docker build -f packaging/Dockerfile -t edgestead .    # in a checkout",
        "cd {folder} && docker compose up -d",
        "docker compose exec edgestead edgecli doctor",
        "docker compose exec edgestead edgecli backup /backups/$(date +%F)    # each night",
    ),
    "none": (
        "edgecli serve --config {folder}/edgestead.toml",
        "edgecli doctor --config {folder}/edgestead.toml",
        "edgecli backup --config {folder}/edgestead.toml BACKUP    # each night, by cron",
    ),
}


def _address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no IP address.", ctx, param) from None


def _names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return _host_names(values)


def _host_names(values: Iterable[str]) -> tuple[str, ...]:
    """Raises click.UsageError."""
    from edgestead import config_values

    found = list(values)
    if len(found) > NAMES_MAX:
        raise click.UsageError(f"A server has at most {NAMES_MAX} names.")
    for value in found:
        try:
            config_values.host_name(value)
        except ValueError:
            raise click.UsageError(f"{value!r} is no host name.") from None
    return tuple(found)


@click.command("init", cls=Command)
@click.argument(
    "folder", metavar="[FOLDER]", type=click.Path(path_type=Path, file_okay=False), default="edgestead"
)
@click.option("--address", metavar="IP", callback=_address, help="What proxied names answer: this machine's.")
@click.option(
    "names",
    "--nameserver",
    metavar="HOST",
    multiple=True,
    callback=_names,
    help="A name of this server in NS records; repeatable.",
)
@click.option("runner", "--run-by", type=click.Choice(RUNNERS), help="Who starts it.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: what is not said by an option is the default.")
@click.option("every", "--settings", is_flag=True, help="Print every setting of the configuration, and end.")
@JSON
def init(
    folder: Path,
    address: str | None,
    names: tuple[str, ...],
    runner: str | None,
    yes: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Write what a server needs into FOLDER: configuration, systemd units or a compose file, a backup timer.

    Asks for this machine's address, the names of its name servers, and who starts it. Nothing is
    installed and nothing overwritten; the steps that are left are printed.

    \b
      edgecli init
      edgecli init /root/edge --address 192.0.2.10 --nameserver ns1.example.net --run-by systemd -y
      edgecli init --settings | less
    """
    if every:
        _show_settings(as_json)
        return
    if not yes:
        address = address or _asked_address()
        names = names or _asked_names()
        runner = runner or click.prompt(
            "Who starts it", type=click.Choice(RUNNERS), default=RUNNERS[0], err=True
        )
    address, names = address or ADDRESS_DEFAULT, names or NAMES_DEFAULT
    runner = runner or RUNNERS[0]
    files = files_for(address, names, runner)
    _write(folder, files)
    steps = [step.format(folder=folder) for step in _STEPS[runner]]
    written = [str(folder / name) for name in files]
    lines = [
        *(f"Wrote {name}" for name in written),
        "Next, look at them, and then:",
        *(f"  {one}" for one in steps),
    ]
    show_lines({"files": written, "next": steps}, *lines, as_json=as_json)


def files_for(address: str, names: Iterable[str], runner: str) -> Mapping[str, str]:
    """Each file by its name."""
    quoted = ", ".join(f'"{name}"' for name in names)
    toml = (
        "# Every setting, with its default: `edgecli init --settings`.\n"
        f"{_LISTENS[runner]}"
        f'edge-address = ["{address}"]\n'
        f"nameserver = [{quoted}]\n"
        "dns-rate = 200\n"
        "backup-hours = 26    # `edgecli doctor` warns when the last backup is older\n"
    )
    beside = Path(sys.executable).with_name("edgecli")
    replaced = {_EXAMPLE_ADDRESS: address, _EXAMPLE_BIN: str(beside) if beside.exists() else _EXAMPLE_BIN}
    return {"edgestead.toml": toml, **{name: _unit(name, replaced) for name in _FILES[runner]}}


def _show_settings(as_json: bool) -> None:
    """What a configuration file may say, as comments of one."""
    from edgestead.config import OPTIONS, default_words

    rows = [
        {
            "key": option.key,
            "value": option.metavar,
            "many": option.many,
            "default": default_words(option).replace("`", ""),
            "help": option.help.replace("`", ""),
        }
        for option in OPTIONS
    ]
    show_lines({"settings": rows}, *(line for row in rows for line in _comment(row)), as_json=as_json)


def _comment(row: Mapping[str, object]) -> list[str]:
    value = f"[{row['value']}, …]" if row["many"] else row["value"]
    words = f"{row['help']} Default: {row['default']}."
    indented = textwrap.wrap(words, _COLUMNS, initial_indent="#   ", subsequent_indent="#   ")
    return [f"# {row['key']} = {value}", *indented]


def _unit(name: str, replaced: Mapping[str, str]) -> str:
    text = (_UNITS / name).read_text()
    for example, value in replaced.items():
        text = text.replace(example, value)
    return text


def _asked_address() -> str:
    def checked(value: str) -> str:
        try:
            return str(ipaddress.ip_address(value))
        except ValueError:
            raise click.UsageError(f"{value!r} is no IP address.") from None

    question = "The address of this machine that visitors reach"
    answer: str = click.prompt(question, default=ADDRESS_DEFAULT, value_proc=checked, err=True)
    return answer


def _asked_names() -> tuple[str, ...]:
    def checked(value: str) -> tuple[str, ...]:
        return _host_names(value.replace(",", " ").split())

    answer: tuple[str, ...] = click.prompt(
        "Its names in NS records", default=" ".join(NAMES_DEFAULT), value_proc=checked, err=True
    )
    return answer


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """All of them or none. Raises Failed where one is there."""
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise Failed(f"{folder / there[0]} is there already.", "Name another FOLDER, `edgecli init FOLDER`.")
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as all_or_none:
        for name, text in files.items():
            file = all_or_none.enter_context(made(folder / name))
            file.write(text.encode())
            file.flush()
