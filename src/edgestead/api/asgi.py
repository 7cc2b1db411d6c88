"""The shapes of ASGI, as far as we speak it.

Owns  the type names.
Asks  nobody.
Tells `api`.
Not   HTTP.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
