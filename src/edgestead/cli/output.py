"""JSON as the commands print it.

Owns  its layout (two blanks), and times as ISO 8601 in UTC.
Not   what is printed.
"""

import json
import time
from collections.abc import Iterable
from typing import Any

import click


def echo_array(items: Iterable[Any]) -> None:
    """An array, item by item as they come: a namespace may hold more keys than memory does."""
    _echo_container("[", "]", (_pretty(item) for item in items))


def echo_object(members: Iterable[tuple[str, Any]]) -> None:
    _echo_container("{", "}", (f"{_pretty(name)}: {_pretty(value)}" for name, value in members))


def _echo_container(opening: str, closing: str, texts: Iterable[str]) -> None:
    separator = f"{opening}\n"
    for text in texts:
        click.echo(f"{separator}  {text}", nl=False)
        separator = ",\n"
    click.echo(f"\n{closing}" if separator != f"{opening}\n" else f"{opening}{closing}")


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")


def iso_time(epoch_s: float) -> str:
    """2026-11-21T03:39:11Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_s))
