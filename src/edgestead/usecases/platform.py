"""What this server is, as far as use cases need to know.

Owns  `Platform`.
Not   who calls (`model.call`); where the facts come from (the server's configuration).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from edgestead.model.ids import new_token_text
from edgestead.model.quotas import NO_QUOTAS, Quotas
from edgestead.usecases.ruleset.managed import ManagedRuleset
from edgestead.usecases.serving.keys import Seal, in_memory
from edgestead.usecases.serving.rendering import Renderer


@dataclass(frozen=True, kw_only=True)
class Platform:
    """Facts of configuration, and the sources of identifiers and secrets.

    `nameservers` and addresses are text. `edge_addresses` are answered for proxied names; with none, no
    record can be proxied. `own_addresses` are refused as content (spec "Content rules" 1): those that the
    operator named, not a loopback default. `new_id` gives 32 random hex digits, `new_secret` the text of an
    API token.
    `seal` is what signing keys are stored under.
    `orders_certificates`: the server was given an authority.
    `managed` is the managed OWASP ruleset, None where no rule set is loaded.
    Raises InvalidName, ValueError: a name server or address that is none.
    """

    nameservers: tuple[str, ...]
    edge_addresses: tuple[str, ...]
    own_addresses: frozenset[str]
    new_id: Callable[[], str]
    managed: ManagedRuleset | None = None
    quotas: Quotas = NO_QUOTAS
    orders_certificates: bool = False
    seal: Seal = field(default_factory=in_memory)
    new_secret: Callable[[], str] = field(default=new_token_text)
    renderer: Renderer = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "renderer", Renderer(self.nameservers, self.edge_addresses))
