"""Times as words of a shell, and the past as a picture."""

import pytest

from edgestead.cli.failure import Failed
from edgestead.cli.object import moments

NOW_MS = 1_800_000_000_000
NOON_MS = 1_795_262_400_000  # 2026-11-21T12:00:00Z

AGO = [
    ("90s", NOW_MS - 90_000),
    ("10m", NOW_MS - 600_000),
    ("3h", NOW_MS - 10_800_000),
    ("2d", NOW_MS - 172_800_000),
    ("0s", NOW_MS),
    ("2026-11-21T12:00:00Z", NOON_MS),
    ("2026-11-21 13:00:00.250+01:00", NOON_MS + 250),
]
WRONG = ["", "m", "10", "10w", "-5m", "1.5h", "9" * 13 + "s", "999999d", "yesterday", "2026-13-01T00:00:00Z"]


@pytest.fixture(autouse=True)
def still(monkeypatch):
    monkeypatch.setattr(moments.time, "time", lambda: NOW_MS / 1_000)


@pytest.mark.parametrize(("text", "time_ms"), AGO)
def test_a_time_is_read(text, time_ms):
    assert moments.ago_ms(text) == time_ms
    ahead = time_ms if "T" in text or " " in text else 2 * NOW_MS - time_ms
    assert moments.ahead_ms(text) == ahead


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_time_is_said(text):
    with pytest.raises(Failed, match="is no time"):
        moments.ago_ms(text)


@pytest.mark.parametrize("text", ["2026-11-21T12:00:00", "2026-11-21"])
def test_a_time_without_a_zone_is_refused(text):
    with pytest.raises(Failed, match="zone"):
        moments.ago_ms(text)


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [(None, None), (NOON_MS + 5, "2026-11-21T12:00:00.005Z"), (8_640_000_000_000_000, "8640000000000000 ms")],
)
def test_a_time_is_shown_in_utc(time_ms, text):
    assert moments.when(time_ms) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 30, "3.0 GiB")],
)
def test_a_size_is_shown(count, text):
    assert moments.size_of(count) == text


def moment(seconds, size, event="commit", pinned=False):
    return {
        "bookmark": f"b{seconds}",
        "time_us": (NOON_MS + seconds * 1_000) * 1_000,
        "bytes_stored": size,
        "event": event,
        "pinned": pinned,
    }


def test_the_picture_has_a_line_for_each_moment_newest_first():
    lines = list(
        moments.picture([moment(60, 4_096, "restore"), moment(30, 0), moment(0, 1_024, pinned=True)])
    )

    line = lines[0].split("|")
    assert [line[0].strip(), line[2].strip()] == ["2026-11-21T12:00:00.000Z", "2026-11-21T12:01:00.000Z"]
    assert (len(line[1]), line[1][0], line[1][-1], line[1].strip("▁▂█ ")) == (60, "▂", "█", "")
    assert lines[1:3] == ["3 moments, 5.0 KiB", ""]
    assert lines[3] == f"2026-11-21T12:01:00.000Z  < b60    4.0 KiB {'█' * 20}"
    assert lines[4] == "2026-11-21T12:00:30.000Z    b30        0 B"
    assert lines[5] == f"2026-11-21T12:00:00.000Z *  b0    1.0 KiB {'█' * 5}"


def test_nothing_and_one_moment_have_a_picture_too():
    assert list(moments.picture([])) == ["Nothing is kept of that time."]
    assert len(list(moments.picture([moment(0, 0)]))) == 4
