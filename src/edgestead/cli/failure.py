"""How a command of edgecli ends when it could not do what was asked.

Owns  `Failed`, one y/n question, and the last resort for errors nobody expected.
Not   what went wrong. Imports click and the standard library only.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from edgestead.cli.dry_run import is_dry_run

ANSWER_CHARACTERS_MAX = 1_024
TRACEBACK_VARIABLE = "EDGE_TRACEBACK"


class Failed(click.ClickException):
    """The reason, and below it further lines. Exit code 1."""

    def __init__(self, reason: str, *more: str) -> None:
        super().__init__("\n".join((reason, *more)))


def changed_meanwhile(what: str) -> Failed:
    """Somebody else changed what this command read: what it would send says nothing of that."""
    return Failed(f"{what} was changed meanwhile.", "Run it again.")


def warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)


def confirmed(question: str, *, yes: bool, verb: str = "delete", quiet: bool = False) -> bool:
    """Ask y/n on a terminal or a pipe; anything but y or yes is a no. `verb` ends in e.

    `quiet` keeps stdout for what the command prints. A dry run asks nothing.

    Raises Failed when the input ends without an answer: a script that forgot `--yes` must not delete,
    and must notice that it did not.
    """
    if yes or is_dry_run():
        return True
    click.echo(f"{question} [y/n]: ", nl=False, err=quiet)
    answer = sys.stdin.readline(ANSWER_CHARACTERS_MAX) if sys.stdin else ""
    if not sys.stdin or not sys.stdin.isatty():
        click.echo(err=quiet)  # on a terminal the answer's own line end does this
    if not answer:
        done = "made" if verb == "make" else f"{verb}d"
        raise Failed(f"The input ended without an answer. Nothing is {done}; --yes {verb}s without asking.")
    if answer.strip().lower() in ("y", "yes"):
        return True
    click.echo(f"Not {verb[:-1]}ing", err=quiet)
    return False


@contextmanager
def no_traceback() -> Iterator[None]:
    """Turn what nobody expected into one line; the variable EDGE_TRACEBACK shows the rest."""
    try:
        yield
    except (click.ClickException, click.Abort, click.exceptions.Exit, KeyboardInterrupt):
        raise
    except BrokenPipeError:
        raise  # click ends quietly
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise Failed(f"{where}{error.strerror or error}.", *next_step()) from None
    except UnicodeEncodeError as error:
        raise Failed(_not_encoded(error)) from None
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        raise Failed(
            f"Unexpected {type(error).__name__}: {error}",
            f"This is a fault of edgecli. Run it again with {TRACEBACK_VARIABLE}=1 for details to report.",
        ) from None


def next_step() -> Iterator[str]:
    """Where it is told how the command that runs is called."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        yield f"`{ctx.command_path} --help` says what it takes."


def _not_encoded(error: UnicodeEncodeError) -> str:
    """Text came from the shell as bytes that are none, or the terminal cannot show what is text."""
    text = error.object[error.start : error.end]
    if all("\udc80" <= character <= "\udcff" for character in text):  # how Python keeps such bytes
        shown = "".join(f"\\x{ord(character) - 0xDC00:02x}" for character in text)
        return f"An argument holds {shown}, which is not UTF-8."
    return f"The output's encoding, {error.encoding}, has no {text}. PYTHONIOENCODING=utf-8 chooses another."


def counted(number: int, unit: str) -> str:
    """`1 byte`, `2 bytes`."""
    return f"{number} {unit}{'' if number == 1 else 's'}"


def listed(names: Iterable[str], *, most: int = 12) -> str:
    """`a, b and 3 more`."""
    all_ = list(names)
    rest = len(all_) - most
    return ", ".join(all_[:most]) + (f" and {rest} more" if rest > 0 else "")
