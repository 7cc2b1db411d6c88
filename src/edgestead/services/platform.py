"""What this server is, as far as use cases need to know.

Owns  `Platform`.
Asks  nobody: the server fills it from the configuration.
Tells every use case that renders or refuses something because of where it runs.
Not   who calls (`model.call`).
"""

from collections.abc import Callable

import msgspec


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of configuration, and the source of identifiers.

    `nameservers` and addresses are text. `edge_addresses` are answered for proxied names; with none, no
    record can be proxied. `own_addresses` are refused as content (spec "Content rules" 1): those that the operator
    named, not a loopback default. `new_id` gives 32 random hex digits.
    """

    nameservers: tuple[str, ...]
    edge_addresses: tuple[str, ...]
    own_addresses: frozenset[str]
    new_id: Callable[[], str]
