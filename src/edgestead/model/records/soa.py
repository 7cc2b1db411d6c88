"""SOA: a zone's own record.

Owns  the type.
Not   serials, and whether a caller may write one.
"""

from edgestead.model.records.kinds import U32, HostName
from edgestead.model.records.table import Rdata, record_type


@record_type(6, "RFC 1035 §3.3.13")
class SOA(Rdata, frozen=True):
    """A zone's own record, made by the platform; refresh, retry, expire and minimum are seconds."""

    mname: HostName
    rname: HostName
    serial: U32
    refresh: U32
    retry: U32
    expire: U32
    minimum: U32
