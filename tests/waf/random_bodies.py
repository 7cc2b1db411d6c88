"""Multipart, JSON and form bodies put together at random: mostly right, each with its chance of being odd."""

from random import Random

BOUNDARY = b"XyZ"
TYPES = [
    b"multipart/form-data; boundary=XyZ",
    b'multipart/form-data; boundary="XyZ"',
    b"multipart/form-data boundary=XyZ",
    b"multipart/form-data; boundary =XyZ",
    b"multipart/form-data; boundary= XyZ",
    b"multipart/form-data; BOUNDARY=XyZ",
    b"multipart/form-data; boundary=XyZ; charset=utf-8",
    b"multipart/form-data; x=y; boundary=XyZ",
    b"multipart/form-data; boundary=XyZ; boundary=b",
    b"multipart/form-data",
    b"multipart/form-data; boundary=X\xffZ",
    b"Multipart/Form-Data; boundary=XyZ",
    b"multipart/form-data; boundary=XyZ;boundaryx",
    b'multipart/form-data; boundary="XyZ',
]
DISPOSITIONS = [
    b'form-data; name="a"',
    b'form-data; name="f"; filename="x.txt"',
    b"form-data; name='q'",
    b"form-data; name=plain",
    b'form-data; name="a;b"',
    b'form-data; name="a\\"b"',
    b'form-data; name="a\'b"',
    b'form-data; filename="x"',
    b'form-data;name="a";filename=""',
    b'form-data; name="a"; name="b"',
    b'form-data; name = "a"',
    b'form-data; name="a"; filename ="x"',
    b"form-data; name=\"a\"; filename*=UTF-8''x%20y",
    b'form-data; name="a"; filename="x"; filename*=UTF-8\'\'x%20y',
    b'form-data; name="a"; filename="x"; filename*=UTF-8\'\'x%2',
    b'attachment; name="a"',
    b"form-data",
    b"form-data; ",
    b"form-data; name",
    b'form-data; name="a" x',
    b'form-data; name="a";',
    b'form-data; name="a"; foo="b"',
    b"form-data; name=a'b",
    b'form-data; name="a',
    b'form-data; name=""',
    b'form-data; name="a\\x"',
    b'form-data; name="a""',
    b"form-data; name='a'x",
    b'form-data; name="\xc3\xa9\xff"',
    b'form-data ; name="a"',
]
FURTHER_HEADERS = [
    *(b"Content-Type: text/plain", b"X: z", b"X:y", b" folded", b"\tfolded", b"\x0bfolded", b" \x0b folded"),
    *(b"NoColon", b": novalue", b"Bad Name: x", b"X\xff: y", b"X: \0"),
]
LINES = [
    *(
        b"data",
        b"",
        b"line two",
        b"--Other",
        b"-- XyZ",
        b'--"XyZ"',
        b"x--XyZ",
        b"--",
        b"---",
        b"--x",
        b"a\0b",
    ),
    *(b"\r", b"z" * 5_000, b"-", b" --XyZ"),
]


def multipart(chance: Random) -> tuple[bytes, bytes]:
    """A content type and a body."""

    def line_end() -> bytes:
        return chance.choices([b"\r\n", b"\n"], [40, 1])[0]

    def mostly(first: list[bytes], rest: list[bytes], weight: float) -> bytes:
        return chance.choice(first) if chance.random() < weight else chance.choice(rest)

    out = [chance.choice([b"pre\r\n", b"--Other\r\n", b"\r\n", b"--", b"x--XyZ\r\n"])] * (
        chance.random() < 0.04
    )
    for _ in range(chance.randint(0, 4)):
        out += [b"--", BOUNDARY, mostly([b""], [b" ", b"x", b"--"], 0.97), line_end()]
        headers = [b"Content-Disposition: " + mostly(DISPOSITIONS[:2], DISPOSITIONS, 0.8)]
        headers += [chance.choice(FURTHER_HEADERS[:3])] * (chance.random() < 0.3)
        headers += [chance.choice(FURTHER_HEADERS[3:])] * (chance.random() < 0.05)
        for header in headers:
            out += [header, line_end()]
        out.append(line_end())
        for _ in range(chance.randint(0, 3)):
            out += [mostly(LINES[:3], LINES, 0.85), line_end()]
    out.append(mostly([b"--XyZ--"], [b"--XyZ", b"", b"--XyZ---", b"--XyZ-- ", b"--xyz--"], 0.93))
    out.append(chance.choices([b"\r\n", b"\n", b"", b"\r\ntrail\r\n"], [30, 1, 5, 2])[0])
    return mostly(TYPES[:1], TYPES, 0.8), b"".join(out)


KEYS = ["a", "b.c", "", "é", "json", "array_0", 'q\\"']
SCALARS = [
    "1",
    "-0.50e+3",
    '"x"',
    '""',
    "true",
    "false",
    "null",
    '"\\u00e9\\ud83d\\ude00\\n"',
    '"a&b=c"',
    '"\\u0000"',
]
BROKEN_JSON = [
    "",
    "{",
    "[1,]",
    "{'a':1}",
    "01",
    "NaN",
    '"a',
    "[1] x",
    '{"a" 1}',
    "nul",
    '"\t"',
    "\ufeff1",
    "// c",
]


def json(chance: Random, depth: int = 0) -> str:
    kind = chance.random()
    if depth > 4 or kind < 0.4:
        return chance.choice(SCALARS)
    inner = [json(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if kind < 0.7:
        return "[" + ", ".join(inner) + "]"
    return "{" + ",".join(f'"{chance.choice(KEYS)}": {value}' for value in inner) + "}"


FORM_PIECES = [
    *rb"a b = & + %41 %zz % %4 %00 %26 %3d ; # \ ' [0] a=1&b=2 &&".split(),
    *(b"\xff", b"\n", b"\0", b" "),
]


def form(chance: Random) -> bytes:
    return b"".join(chance.choices(FORM_PIECES, k=chance.randint(1, 12)))


TARGET_PIECES = rb"/ // a b.php ? & = + %41 %2f %zz % # \ : http://h https: . .. %00 %c3%a9 ; ~ *".split()


def target(chance: Random) -> bytes:
    return b"/" * (chance.random() < 0.8) + b"".join(chance.choices(TARGET_PIECES, k=chance.randint(0, 10)))


COOKIE_PIECES = [b"a=1", b"b", b"=c", b";", b"; ", b" ", b"\t", b"d=e=f", b'"x; y"', b"%20", b"A=2"]


def cookie(chance: Random) -> bytes:
    return b"".join(chance.choices(COOKIE_PIECES, k=chance.randint(0, 8)))
