"""Products of the hosted service that are not a part of this platform, and where their paths lie.

Owns  the table of path prefixes, and the words about them.
Not   endpoints that ended on a date (`changes`); refusing anything.

The code and the status of an unknown path stay what clients know; the message is for people, who would look
for a wrong identifier.
"""

BASE = "/client/v4"  # as `rest.routing` has it
_OWNERS = {"accounts": 2, "zones": 2, "user": 1}  # segments that say whose it is

# What follows the owner, or the base path: one segment or two. Two are asked before one.
PRODUCTS: dict[str, tuple[str, ...]] = {
    "Access": ("access",),
    "advanced, client and keyless certificates": (
        *("acm", "certificate_authorities", "client_certificates"),
        *("custom_csrs", "dcv_delegation", "hostnames", "keyless_certificates", "mtls_certificates"),
        *(
            "origin_tls_client_auth",
            "ssl/analyze",
            "ssl/recommendation",
            "ssl/verification",
            "origin_ca_certificates",
        ),
    ),
    "AI": ("ai", "ai-gateway", "ai-search", "autorag", "vectorize"),
    "analytics": ("analytics", "dns_analytics", "graphql", "rum", "mnm"),
    "API Gateway": ("api_gateway", "schema_validation", "token_validation"),
    "Argo": ("argo", "smart_shield"),
    "billing": ("billing", "subscriptions"),
    "Bot Management": ("bot_management",),
    "Bring Your Own IP": ("addressing",),
    "Cache Reserve and tiered caching": ("cache",),
    "Cloud Connector": ("cloud_connector",),
    "Custom Hostnames": ("custom_hostnames",),
    "Custom Pages": ("custom_pages",),
    "D1": ("d1",),
    "DNS Firewall": ("dns_firewall",),
    "Email Routing and Email Security": ("email", "email-security"),
    "Healthchecks": ("healthchecks", "smart_healthchecks"),
    "Hyperdrive": ("hyperdrive",),
    "Images": ("images",),
    "Lists": ("rules/lists",),
    "Load Balancing": ("load_balancers", "load_balancing_analytics"),
    "Logpush and log retrieval": ("logpush", "logs"),
    "Magic Transit": ("magic", "cni"),
    "Managed Transforms and URL normalisation": ("managed_headers", "url_normalization"),
    "notifications": ("alerting",),
    "Page Shield": ("page_shield",),
    "Pages": ("pages",),
    "Pipelines": ("pipelines",),
    "Queues": ("queues",),
    "R2": ("r2", "r2-catalog", "slurper"),
    "Radar and threat intelligence": ("radar", "intel", "urlscanner", "brand-protection", "cloudforce-one"),
    "Realtime": ("calls", "realtime"),
    "Registrar": ("registrar",),
    "Secrets Store": ("secrets_store",),
    "Snippets": ("snippets",),
    "Spectrum": ("spectrum",),
    "Stream": ("stream",),
    "Tunnel": ("cfd_tunnel", "tunnels", "teamnet", "warp_connector"),
    "Turnstile": ("challenges",),
    "Waiting Room": ("waiting_rooms",),
    "Web3 gateways": ("web3",),
    "Workers": (  # what else lies there is an older name of the key-value store
        *("workers/account-settings", "workers/dispatch", "workers/domains", "workers/durable_objects"),
        *("workers/observability", "workers/scripts", "workers/services", "workers/subdomain"),
        *("workers/workers", "workflows", "containers"),
    ),
    "Zaraz": ("zaraz", "settings/zaraz"),
    "Zero Trust": ("gateway", "devices", "dex", "dlp", "zerotrust", "zt_risk_scoring", "zt_networks"),
}
_BY_PREFIX = {prefix: product for product, prefixes in PRODUCTS.items() for prefix in prefixes}


def remarks_on(path: str) -> tuple[str, ...]:
    """What people should hear about a path without a route, as it came."""
    product = product_of(path)
    if product is None:
        return ()
    return (f"Not a part of Edgestead: {product}. docs/differences.md lists what is not.",)


def product_of(path: str) -> str | None:
    """The product whose path it is, or None."""
    parts = path.removeprefix(BASE).split("/", 5)[1:]
    parts = parts[_OWNERS.get(parts[0], 0) :] if parts else parts
    return _BY_PREFIX.get("/".join(parts[:2])) or _BY_PREFIX.get("".join(parts[:1]))
