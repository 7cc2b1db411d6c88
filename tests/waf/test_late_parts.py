"""What follows the inspected prefix of a multipart body: files pass, fields are held until they were seen."""

from random import Random

import pytest

from edgestead.waf.bodies import late_parts
from edgestead.waf.bodies.late_parts import LateParts
from edgestead.waf.bodies.multipart import Multipart
from edgestead.waf.transaction import Refused

TYPE = b"multipart/form-data; boundary=XyZ"


def field(name: str, content: bytes) -> bytes:
    return b'--XyZ\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), content)


def file(name: str, content: bytes) -> bytes:
    head = b'--XyZ\r\nContent-Disposition: form-data; name="%b"; filename="%b.txt"\r\n\r\n' % (
        name.encode(),
        name.encode(),
    )
    return head + content + b"\r\n"


END = b"--XyZ--\r\n"
BIG = b"\n--Xy-\r\n\0" * 500


def streamed(body: bytes, cut: int, size: int) -> tuple[bytes, list[bytes]]:
    """What passes of a body whose first `cut` bytes were inspected, and what had to be inspected later."""
    parts = LateParts(TYPE, body[:cut])
    passed, late = [parts.first], []
    for at in range(cut, len(body), size):
        passes, seen = parts.feed(body[at : at + size])
        passed.append(passes)
        late += [seen] * bool(seen)
    parts.end()
    return b"".join(passed), late


def fields_and_files(bodies: list[bytes]) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
    fields, files = [], []
    for body in bodies:
        found = Multipart(TYPE)
        found.read(body)
        fields += found.fields
        files += found.files
    return fields, files


BODIES = [
    file("f", BIG) + field("late", b"1 union select") + END,
    field("a", b"1") + file("f", BIG) + field("b", b"") + file("g", b"") + field("c", b"x\r\ny") + END,
    file("f", BIG) + END + b"\r\n \n",
    (file("f", BIG.replace(b"\r", b"")) + field("a", b"1") + END).replace(b"\r\n", b"\n"),
    file("f", BIG) + file("g", BIG) + field("z", b"z" * 3_000) + END.rstrip(),
    field("a", b"1" * 400) + file("f", BIG) + file("g", b"--Xy") + END,
]


@pytest.mark.parametrize("body", BODIES)
def test_all_of_it_passes_and_every_part_was_inspected(body: bytes) -> None:
    whole = fields_and_files([body])
    for cut in (450, 460, 1_000, len(body) - 400, len(body) - 3, len(body) - 1):
        for size in (1, 7, 64, 5_000):
            prefix = Multipart(TYPE)
            prefix.read(body[:cut], complete=False)
            passed, late = streamed(body, cut, size)
            fields, files = fields_and_files(late)

            assert passed == body
            assert prefix.fields + fields == whole[0]
            assert {*prefix.files, *files} == set(whole[1])


def test_a_field_passes_only_when_it_is_whole() -> None:
    parts = LateParts(TYPE, file("f", BIG))
    late = field("late", b"attack")

    passed = [parts.feed(bytes((byte,))) for byte in late]
    assert all(seen == b"" for _, seen in passed)
    assert b"attack" not in b"".join(piece for piece, _ in passed)

    passes, seen = parts.feed(END[:7])
    assert b"attack" in passes
    assert fields_and_files([seen]) == ([(b"late", b"attack")], [])


def test_a_late_part_that_says_it_is_json_is_held_like_a_field() -> None:
    parts = LateParts(TYPE, file("f", BIG))
    data = file("d", b'{"a": "attack"}').replace(b"\r\n\r\n", b"\r\nContent-Type: text/json\r\n\r\n", 1)

    assert b"attack" not in parts.feed(data)[0]
    passes, seen = parts.feed(END)
    assert b"attack" in passes
    assert (b"d.json.a", b"attack") in fields_and_files([seen])[0]


def test_a_long_file_is_not_kept() -> None:
    parts = LateParts(TYPE, file("f", BIG)[:900])
    for _ in range(50):
        passes, late = parts.feed(b"x" * 10_000)
        assert (len(passes) >= 9_900, late) == (True, b"")


PREFIX = file("f", BIG)
REFUSED = [
    (field("a", b"x" * late_parts.HELD_BYTES_MAX * 2), "body-size", 413),
    (b"--XyZ\r\nContent-Disposition: form-data\r\n\r\n\r\n" + END, "multipart-syntax", 400),
    (b"--XyZ\r\nX: " + b"y" * 10_000, "part-headers", 413),
    (field("a", b"") * 300 + END, "parts", 413),
    (file("g", END) + END, "multipart-syntax", 400),
    # what some origin reads as a part of its own
    (END + field("q", b"attack") + END, "multipart-syntax", 400),
    (END[:-2] + b"x", "multipart-syntax", 400),
    (file("g", b"x--XyZ\r\n") + END, "multipart-syntax", 400),
    (file("g", b"x\r--XyZ\r") + END, "multipart-syntax", 400),
    (file("g", b"x\n--XyZ\n") + END, "multipart-syntax", 400),
    (field("g", b"x\n--XyZ\n") + END, "multipart-syntax", 400),
    (file("g", b"").replace(b"; f", b";\r\n f") + END, "multipart-syntax", 400),
]


@pytest.mark.parametrize(("rest", "reason", "status"), REFUSED)
def test_what_cannot_be_inspected_is_refused(rest: bytes, reason: str, status: int) -> None:
    for size in (1_000, len(rest)):
        with pytest.raises(Refused) as caught:
            streamed(PREFIX + rest, len(PREFIX), size)
        assert (caught.value.reason, caught.value.status) == (reason, status)


@pytest.mark.parametrize("rest", [b"", field("a", b"1"), b"--XyZ", b"--XyZ\r\nContent-Disp"])
def test_a_body_without_its_end_is_refused_at_its_end(rest: bytes) -> None:
    parts = LateParts(TYPE, PREFIX)
    parts.feed(rest)
    with pytest.raises(Refused, match="multipart-syntax"):
        parts.end()


def test_random_cuts_lose_and_hide_nothing() -> None:
    chance = Random(5)
    for _ in range(150):
        made = [
            chance.choice([file, field])(
                f"n{number}", chance.choice([b"", b"a", b"--Xy", b"\r\n", BIG[:200]]) + b"y"
            )
            for number in range(chance.randint(1, 6))
        ]
        body = b"".join(made) + END
        cut, size = chance.randint(60, len(body)), chance.randint(1, 200)
        prefix = Multipart(TYPE)
        prefix.read(body[:cut], complete=False)
        passed, late = streamed(body, cut, size)
        fields, files = fields_and_files(late)
        whole = fields_and_files([body])

        assert passed == body
        assert (prefix.fields + fields, {*prefix.files, *files}) == (whole[0], set(whole[1]))
