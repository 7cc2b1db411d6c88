"""What expressions see of an exchange: one loader per field.

Owns  the table of loaders.
Asks  `language` for the fields' slots and defaults.
Tells `proxy.pipeline`, which gives each exchange its view.
Not   what a field means in general (docs/reference/fields.md).
"""

from collections.abc import Mapping

from edgestead.language import Loader, loader_table
from edgestead.proxy.exchange import Exchange

_LOADERS: Mapping[str, Loader[Exchange]] = {
    "http.host": lambda exchange: exchange.host,
    "http.request.method": lambda exchange: exchange.method,
    "http.request.uri": lambda exchange: exchange.target,
    "http.request.uri.path": lambda exchange: exchange.path,
    "http.request.uri.query": lambda exchange: exchange.query,
    "http.user_agent": lambda exchange: exchange.header(b"user-agent") or b"",
    "cf.ray_id": lambda exchange: exchange.ray,
    "cf.zone.name": lambda exchange: exchange.zone.name,
    "ssl": lambda exchange: exchange.scheme == b"https",
}

LOADERS = loader_table(_LOADERS)
