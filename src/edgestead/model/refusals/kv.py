"""Refusals of key-values and their namespaces.

Owns  code, status and wording of each.
Not   the checks (`model.kv`).

    NotFound (404)
    ├── KeyNotFound       10009
    └── NamespaceNotFound 10013
    BadRequest (400)
    ├── NamespaceIdInvalid   10011
    ├── KvBodyInvalid        10012
    │   └── BulkItemInvalid  10012
    ├── BadCursor            10012
    ├── TitleTaken           10014
    ├── TitleInvalid         10019
    ├── TooManyNamespaces    10022
    ├── NoKeys               10029
    ├── KeyInvalid           10030
    │   └── KeyTooLong       10030 (414)
    ├── ExpirationInvalid    10033
    ├── TtlInvalid           10034
    ├── ValueTooLarge        10047 (413)
    │   └── ValuesTooLarge   10047
    ├── SpaceQuota           10048
    └── MetadataInvalid      10147
        └── MetadataTooLarge 10147 (413)
    MethodNotAllowed (405)
    └── KvMethodNotAllowed 10405
    TooManyRequests (429)
    └── KvBusy 10429
"""

from edgestead.model.refusals import BadRequest, MethodNotAllowed, NotFound, TooManyRequests


class KeyNotFound(NotFound):
    """The key is absent or expired. Clients match these words."""

    code, wording = 10009, "key not found"


class NamespaceIdInvalid(BadRequest):
    code, wording = 10011, "The namespace id must be 32 hexadecimal digits."


class KvBodyInvalid(BadRequest):
    """The body is not what the route takes; `reason` names the item when there are several."""

    code, wording = 10012, "invalid request body: {reason}"


class BadCursor(BadRequest):
    """The cursor is not one that a listing returned."""

    code, wording = 10012, "The cursor is not valid."


class KvMethodNotAllowed(MethodNotAllowed):
    code = 10405


class KvBusy(TooManyRequests):
    """Large bodies of one credential come in one after another."""

    code, wording = 10429, "{limit} large bodies of these credentials are on their way already. Try again."


class NamespaceNotFound(NotFound):
    code, wording = 10013, "namespace not found"


class TitleTaken(BadRequest):
    code, wording = 10014, "a namespace with this account ID and title already exists"


class TitleInvalid(BadRequest):
    code, wording = 10019, "The title {reason}."


class TooManyNamespaces(BadRequest):
    code, wording = 10022, "The account has {limit} namespaces already, which is the limit."


class NoKeys(BadRequest):
    code, wording = 10029, "At least one key is needed."


class KeyInvalid(BadRequest):
    code, wording = 10030, "The key {reason}."


class KeyTooLong(KeyInvalid):
    code, status, wording = 10030, 414, "UTF-8 encoded length of {bytes} exceeds key length limit of {limit}."


class ExpirationInvalid(BadRequest):
    code, wording = 10033, "Invalid expiration of {expiration}. {reason}."


class TtlInvalid(BadRequest):
    code, wording = 10034, "Invalid expiration_ttl of {ttl}. {reason}."


class ValueTooLarge(BadRequest):
    code, status, wording = 10047, 413, "The value is larger than {limit} bytes."


class ValuesTooLarge(ValueTooLarge):
    code, wording = 10047, "The values together are larger than {limit} bytes."


class SpaceQuota(BadRequest):
    """What is asked to be written would be more than the operator gives; deleting keys makes room at once."""

    code = 10048
    wording = "The {holder} holds {used_bytes} bytes of values and may hold {limit_bytes}: delete keys first."


class MetadataInvalid(BadRequest):
    code, wording = 10147, "The metadata {reason}."


class MetadataTooLarge(MetadataInvalid):
    code, status, wording = 10147, 413, "The metadata is {bytes} bytes of JSON; the limit is {limit}."


class BulkItemInvalid(KvBodyInvalid):
    """One item is wrong, and with it the whole request. `index` counts from 0."""

    wording = "invalid request body: item {index}: {reason}"
