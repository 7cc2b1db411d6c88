"""By which names browsers may ask for pages.

Owns  names and addresses of loopback, and those that the operator gave.
Not   origins of forms (`web.site`) and of passkeys (`web.passkeys`).

A page of anywhere can have its own name answer 127.0.0.1 (DNS rebinding). To a browser, what then comes from
here is of that page's origin: its script reads it, and sends our forms. The name it asks by tells them apart.
"""

import re
from collections.abc import Collection
from ipaddress import ip_address
from typing import Final

_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9.-]{1,255}))(?::[0-9]{1,5})?", re.ASCII)


def is_known(host: str, names: Collection[str]) -> bool:
    """Whether `host`, a Host header in lower case, is loopback or one of `names`, at any port."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1] or found[2].removesuffix(".")
    return name == "localhost" or name.endswith(".localhost") or name in names or _is_loopback(name)


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
