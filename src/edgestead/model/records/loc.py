"""LOC: where something stands on the earth.

Owns  the type, its text with optional parts, its packed form.
Not   geodesy.
"""

from decimal import Decimal
from typing import Annotated, Self

from edgestead.model.names import InvalidValue
from edgestead.model.records.kinds import Choice, Integer, Number
from edgestead.model.records.table import Rdata, record_type
from edgestead.model.records.wire import WireReader
from edgestead.model.records.words import words

EQUATOR = 2**31  # RFC 1876 §2: LATITUDE and LONGITUDE count thousandths of a second of arc from here
SEA_LEVEL_CM = 10_000_000  # RFC 1876 §2: ALTITUDE counts from 100,000 m below
SIZES = ("1", "10000", "10")  # RFC 1876 §3: size, horizontal and vertical precision when left out, in m

Minutes = Annotated[int, Integer(1, 59)]
Seconds = Annotated[Decimal, Number("0", "59.999", 3)]
Metres = Annotated[Decimal, Number("0", "90000000", 2)]


@record_type(
    29,
    "RFC 1876 §2",
    form="data",
    defaults={
        "lat_minutes": 0,
        "lat_seconds": 0,
        "long_minutes": 0,
        "long_seconds": 0,
        "size": SIZES[0],
        "precision_horz": SIZES[1],
        "precision_vert": SIZES[2],
    },
)
class LOC(Rdata, frozen=True):
    """A place, in degrees to thousandths of a second and metres to centimetres.

    On the wire size and precision have one digit and a power of ten; further digits are cut off there.
    """

    lat_degrees: Annotated[int, Integer(1, 90)]
    lat_minutes: Minutes
    lat_seconds: Seconds
    lat_direction: Annotated[str, Choice("N", "S")]
    long_degrees: Annotated[int, Integer(1, 180)]
    long_minutes: Minutes
    long_seconds: Seconds
    long_direction: Annotated[str, Choice("E", "W")]
    altitude: Annotated[Decimal, Number("-100000", "42849672.95", 2)]
    size: Metres
    precision_horz: Metres
    precision_vert: Metres

    def check(self) -> None:
        if self._latitude > 90 * 3_600_000 or self._longitude > 180 * 3_600_000:
            raise InvalidValue("it lies beyond 90 degrees of latitude or 180 of longitude")

    @property
    def _latitude(self) -> int:
        return _thousandths(self.lat_degrees, self.lat_minutes, self.lat_seconds)

    @property
    def _longitude(self) -> int:
        return _thousandths(self.long_degrees, self.long_minutes, self.long_seconds)

    @classmethod
    def content_words(cls, content: str) -> list[str]:
        """`d [m [s]] N|S d [m [s]] E|W altitude[m] [size[m] [horizontal[m] [vertical[m]]]]`, RFC 1876 §3."""
        found = words(content)
        latitude, found = _angle(found, "NS")
        longitude, found = _angle(found, "EW")
        metres = [word[:-1] if word[-1] in "mM" else word for word in found]
        return latitude + longitude + metres + list(SIZES[max(0, len(metres) - 1) :] if metres else ())

    def to_wire(self) -> bytes:
        latitude = EQUATOR + (self._latitude if self.lat_direction == "N" else -self._latitude)
        longitude = EQUATOR + (self._longitude if self.long_direction == "E" else -self._longitude)
        sizes = bytes(map(_packed_size, (self.size, self.precision_horz, self.precision_vert)))
        numbers = (latitude, longitude, int(self.altitude * 100) + SEA_LEVEL_CM)
        return b"\x00" + sizes + b"".join([number.to_bytes(4, "big") for number in numbers])

    @classmethod
    def unpack(cls, reader: WireReader) -> Self:
        if reader.number(1):
            raise InvalidValue("only version 0 is known")
        sizes = [_unpacked_size(reader.number(1)) for _ in range(3)]
        latitude = reader.number(4) - EQUATOR
        longitude = reader.number(4) - EQUATOR
        altitude = _metres(reader.number(4) - SEA_LEVEL_CM)
        return cls(
            *_degrees(latitude), "N" if latitude >= 0 else "S",
            *_degrees(longitude), "E" if longitude >= 0 else "W",
            altitude, *sizes,
        )  # fmt: skip


def _thousandths(degrees: int, minutes: int, seconds: Decimal) -> int:
    return (degrees * 60 + minutes) * 60_000 + int(seconds * 1000)


def _degrees(thousandths: int) -> tuple[int, int, Decimal]:
    minutes, rest = divmod(abs(thousandths), 60_000)
    return minutes // 60, minutes % 60, Decimal(rest).scaleb(-3)


def _metres(centimetres: int) -> Decimal:
    return Decimal(centimetres).scaleb(-2)


def _packed_size(metres: Decimal) -> int:
    digit, power = int(metres * 100), 0
    while digit > 9:
        digit, power = digit // 10, power + 1
    return digit << 4 | power


def _unpacked_size(octet: int) -> Decimal:
    digit, power = octet >> 4, octet & 15
    if digit > 9 or power > 9:
        raise InvalidValue("a size is not a digit and a power of ten")
    return _metres(digit * 10**power)


def _angle(found: list[str], directions: str) -> tuple[list[str], list[str]]:
    """Take one angle off the front, its minutes and seconds filled in."""
    for position, word in enumerate(found[:4]):
        if word.upper() in directions and position:
            zeros = ["0"] * (3 - position)
            return [*found[:position], *zeros, word], found[position + 1 :]
    raise InvalidValue(f"degrees must be followed by {' or '.join(directions)}")
