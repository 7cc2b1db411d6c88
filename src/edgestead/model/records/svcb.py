"""SVCB and HTTPS: how to connect to a service.

Owns  the two types.
Not   resolving alias targets.
"""

from typing import Annotated

from edgestead.model.names import InvalidValue
from edgestead.model.records.kinds import U16, Kind, TargetName
from edgestead.model.records.svcparams import pack_params, params_text, read_params, unpack_params
from edgestead.model.records.table import Rdata, record_type
from edgestead.model.records.wire import WireReader
from edgestead.model.records.words import words


class ServiceParams(Kind[str]):
    """Parameters as the caller wrote them, single blanks between; octets have their keys in order."""

    label = "service parameters"
    takes_rest = True
    is_bounded = False

    def from_word(self, word: str) -> str:
        read_params(word)
        return " ".join(words(word))

    def to_word(self, value: str) -> str:
        return value

    def to_zone_word(self, value: str) -> str:
        return params_text(read_params(value))

    def pack(self, value: str) -> bytes:
        return pack_params(read_params(value))

    def unpack(self, reader: WireReader) -> str:
        return params_text(unpack_params(reader))


class _Binding(Rdata, frozen=True):
    priority: U16
    target: TargetName
    value: Annotated[str, ServiceParams()]

    def check(self) -> None:
        # RFC 9460 §2.4.2 only advises against them, but other implementations cannot read such a record.
        if not self.priority and self.value:
            raise InvalidValue("an alias (priority 0) has no parameters")


@record_type(64, "RFC 9460 §2", form="data", defaults={"value": ""})
class SVCB(_Binding, frozen=True):
    """How to connect to a service: priority 0 is an alias, any other a service; `.` is the owner itself."""


@record_type(65, "RFC 9460 §9", form="data", defaults={"value": ""})
class HTTPS(_Binding, frozen=True):
    """SVCB for web servers."""
