"""What a newer release puts on a wire: all that this release does, and a field more behind it.

Owns  the form of that.
Not   programs that write it (`sitecustomize`).
"""

from typing import Any

import msgspec


def newer(value: Any) -> Any:
    """What msgpack gets of a value when each message and document in it has one field more."""
    if isinstance(value, tuple):
        return [newer(one) for one in value]
    if not isinstance(value, msgspec.Struct):
        return value
    about = type(value).__struct_config__
    members = [newer(one) for one in msgspec.structs.astuple(value)]
    if about.array_like:
        return [*([] if about.tag is None else [about.tag]), *members, {"newer": [1]}]
    tag = {} if about.tag is None else {about.tag_field: about.tag}
    return tag | dict(zip(value.__struct_fields__, members, strict=True)) | {"newer": {"of": 1}}
