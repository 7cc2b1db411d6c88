"""A server that is started with this folder on its path (PYTHONPATH) speaks like one of a newer release.

Owns  which of its documents and messages have a field more.
Not   the field (`fields`).

Python imports this module at the start of each process, before the program has taken the functions that are
replaced here.
"""

import fields  # type: ignore[import-not-found]  # beside this file, on the path

from edgestead.feed import protocol
from edgestead.model import edge, served, transfers, tsig
from edgestead.server.cluster import frames
from edgestead.server.nodes import join


def _with_more(encode):
    return lambda value: encode(fields.newer(value))


_ENCODERS = (
    *((module, "encode") for module in (served, edge, transfers, tsig)),
    *((module, "_encode") for module in (protocol, frames, join)),
)
for _module, _name in _ENCODERS:
    setattr(_module, _name, _with_more(getattr(_module, _name)))
