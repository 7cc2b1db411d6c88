"""DNS record types as rows of one table, and the one codec between `content`, `data`, wire and zone text.

Owns  the 22 types of the specification, and DNAME: their fields, limits and spellings.
Not   owner, TTL, proxy status, and rules between records.

    rdata = parse("MX", content="mail.example.net", priority=10)
    rdata.to_wire(), rdata.to_content(), rdata.to_data(), rdata.top_priority
    from_wire("MX", wire) == rdata
"""

from edgestead.model.records.common import AAAA, CAA, CNAME, DNAME, MX, NAPTR, NS, PTR, SOA, SRV, URI, A
from edgestead.model.records.folding import fold, folded_content, folded_query
from edgestead.model.records.keys import CERT, DHCID, DNSKEY, DS, OPENPGPKEY, SMIMEA, SSHFP, TLSA
from edgestead.model.records.loc import LOC
from edgestead.model.records.svcb import HTTPS, SVCB
from edgestead.model.records.table import TYPES, TYPES_BY_NUMBER, Field, Rdata, RecordType
from edgestead.model.records.txt import TXT
from edgestead.model.refusals.record import ContentRefused, FieldMissing, UnknownType

__all__ = [
    "AAAA",
    "CAA",
    "CERT",
    "CNAME",
    "DHCID",
    "DNAME",
    "DNSKEY",
    "DS",
    "HTTPS",
    "LOC",
    "MX",
    "NAPTR",
    "NS",
    "OPENPGPKEY",
    "PTR",
    "SMIMEA",
    "SOA",
    "SRV",
    "SSHFP",
    "SVCB",
    "TLSA",
    "TXT",
    "TYPES",
    "TYPES_BY_NUMBER",
    "URI",
    "A",
    "Field",
    "Rdata",
    "RecordType",
    "fold",
    "folded_content",
    "folded_query",
    "from_wire",
    "parse",
    "record_type_named",
]


def record_type_named(name: object) -> RecordType:
    """The row of a type. Raises: UnknownType."""
    row = TYPES.get(name) if isinstance(name, str) else None
    if row is None:
        raise UnknownType(type=name if isinstance(name, str) else "of this kind", field="type")
    return row


def parse(type: object, *, content: object = None, data: object = None, priority: object = None) -> Rdata:
    """Read the rdata of a request body; None means not sent.

    A `content` type ignores `data`. A `data` type reads `data` if it was sent, else `content`. `priority` is
    the top-level member; types without one ignore it, and a priority in `data` comes before it.

    Raises: UnknownType, FieldMissing, FieldRefused, ContentRefused, NotIPv4, NotIPv6, ContentTooLong; nothing
            else, whatever JSON is given.
    """
    row = record_type_named(type)
    if data is not None and row.form == "data":
        return row.rdata.from_data(data, priority)
    if content is None:
        raise FieldMissing(type=row.name, field=row.form)
    if not isinstance(content, str):
        raise ContentRefused(type=row.name, field="content", reason="it must be text")
    return row.rdata.from_content(content, priority)


def from_wire(type: str, wire: bytes) -> Rdata:
    """Read uncompressed rdata, as a zone file's reader or a transfer hands it over.

    Raises: UnknownType, ContentRefused, ContentTooLong.
    """
    return record_type_named(type).rdata.from_wire(wire)
