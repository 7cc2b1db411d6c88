"""The first thing of every child: `python -m edgestead.server.entrance MODULE …` loads a module and runs it.

Owns  that the collector of cycles rests meanwhile (`loading`).
Not   the start message (`server.process`); what the child is for. Imports the standard library only.

Nearly all of the objects that modules make when they are loaded stay. Python's collector looks through them
again and again while they come, a fifth of what loading control cost, and once more when a process ends.
"""

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """What is loaded within stays: no collection looks at it, now or later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    with loading():
        module = importlib.import_module(sys.argv.pop(1))
    module.main()


if __name__ == "__main__":
    main()
