"""edgecli kv bulk: files of any size, in batches, with a way to go on."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from edgestead.cli.failure import Failed
from edgestead.cli.http import Refused
from edgestead.cli.kv import batches, bulk
from edgestead.cli.progress import Progress
from edgestead.cli.source import Source
from edgestead.testing.server import environment

from .conftest import call
from .flaky import FlakyProxy

LOCAL_ID = "a" * 32


@pytest.fixture(params=["remote", "local"])
def where(request, edgecli):
    if request.param == "local":
        return ("--namespace-id", LOCAL_ID, "--local")
    return ("--namespace-id", request.getfixturevalue("namespace_id"))


@pytest.fixture
def file(project):
    """Writes a file of the given value, and returns its name."""

    def write(value, name="f.json"):
        (project / name).write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return name

    return write


def pairs(count, value="v"):
    return [{"key": f"k{i:05d}", "value": value} for i in range(count)]


def names(edgecli, where):
    return [entry["name"] for entry in json.loads(edgecli("kv", "key", "list", *where).out)]


# Put


def test_every_member_of_an_entry_arrives(edgecli, where, file):
    entries = [
        {"key": "plain", "value": "é"},
        {"key": "bytes", "value": "AAH/", "base64": True},
        {"key": "all", "value": "v", "metadata": {"m": [1]}, "expiration": 4_000_000_000, "other": 1},
    ]

    done = edgecli("kv", "bulk", "put", file(entries), *where)

    assert done == (0, "Success! 3 pairs written.\n", "", done.bytes)
    assert edgecli("kv", "key", "get", "plain", *where).bytes == "é".encode()
    assert edgecli("kv", "key", "get", "bytes", *where).bytes == b"\x00\x01\xff"
    assert json.loads(edgecli("kv", "key", "list", "--prefix", "all", "--with-metadata", *where).out) == [
        {"name": "all", "expiration": "2096-10-02T07:06:40Z", "metadata": {"m": [1]}}
    ]


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_a_file_may_have_any_number_of_pairs(edgecli, where, file, count):
    done = edgecli("kv", "bulk", "put", file(pairs(count)), *where)

    assert done.out == f"Success! {count} pair{'' if count == 1 else 's'} written.\n"
    assert len(names(edgecli, where)) == count


def test_batches_stay_below_both_limits(file):
    text = file(pairs(2001) + pairs(20, "x" * 1_000_000))

    found = list(batches.batches(batches.Path(text), lambda item: item))

    assert [len(batch.items) for batch in found] == [1000, 1000, 8, 7, 6]
    assert all(sum(map(len, batch.items)) + len(batch.items) <= 8_000_000 for batch in found)
    assert [batch.first for batch in found] == [0, 1000, 2000, 2008, 2015]


def test_one_pair_larger_than_a_batch_goes_alone(edgecli, where, file):
    done = edgecli("kv", "bulk", "put", file([*pairs(2), {"key": "z", "value": "x" * 9_000_000}]), *where)

    assert done.out == "Success! 3 pairs written.\n"
    assert len(edgecli("kv", "key", "get", "z", *where).out) == 9_000_000


BAD_FILES = (
    (b"", "the text ends before the array begins"),
    (b"{}", "not a JSON array"),
    (b"[1]", "Item 0: expected an object with key and value."),
    (b'[{"key":"a","value":"1"},"b"]', "Item 1: expected an object"),
    (b'[{"key":"a","value":"1"}', "ends inside of item 0"),
    (b'[{"key":"a","value":"1"},{"key":"b"}]', "Item 1 is refused.\n"),
    (b'[{"key":"a","value":"1"},{"key":"b","value":1}]', "Item 1 is refused.\n"),
    (b'[{"key":"a","value":"1"},{"key":"b c","value":"1"}]', "may not hold blanks"),
    (b'[{"key":"a","value":"1"},{x}]', "Item 1 is refused.\n"),
)


@pytest.mark.parametrize(("text", "reason"), BAD_FILES)
def test_a_file_that_is_wrong_says_where_and_writes_nothing_of_that_batch(edgecli, where, file, text, reason):
    done = edgecli("kv", "bulk", "put", file(text), *where)

    assert (done.code, done.out) == (1, "")
    assert reason in done.err
    assert names(edgecli, where) == []


def test_a_bad_item_is_named_by_its_number_in_the_file(edgecli, where, file):
    entries = pairs(2500)
    entries[2200]["value"] = 7

    done = edgecli("kv", "bulk", "put", file(entries), *where)

    assert done.code == 1
    assert "Item 2200 is refused." in done.err
    assert "item 200:" not in done.err, "the number in its batch would be another one"
    assert "2000 items are written" in done.err
    assert f"edgecli kv bulk put f.json --namespace-id {where[1]}" in done.err
    assert "--skip 2000" in done.err


def test_where_nothing_is_done_nothing_is_said_of_a_part_that_is(edgecli, where, file):
    done = edgecli("kv", "bulk", "put", file([7]), *where)

    assert "0 items are written.\nGo on with:  edgecli kv bulk put f.json" in done.err


def test_a_file_may_be_a_pipe_that_is_opened_once(edgecli, where, project):
    os.mkfifo("pipe")
    script = f"open('pipe', 'w').write({json.dumps(pairs(2))!r})"
    writer = subprocess.Popen([sys.executable, "-c", script])

    done = edgecli("kv", "bulk", "put", "pipe", *where)

    assert (writer.wait(), done.out) == (0, "Success! 2 pairs written.\n")


def test_a_file_that_breaks_off_while_it_is_read_tells_how_far_it_came(edgecli, where, file, monkeypatch):
    def broken(path, scanner):
        yield from scanner.feed(json.dumps(pairs(1500)).encode())
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(batches, "_items", broken)

    done = edgecli("kv", "bulk", "put", file(pairs(2000)), *where)

    assert done.code == 1
    assert done.err.startswith("Error: f.json cannot be read: Input/output error\n")
    assert f"{len(names(edgecli, where))} items are written" in done.err
    assert "Go on with:  edgecli kv bulk put f.json" in done.err


def test_the_command_that_is_shown_goes_on(edgecli, where, file):
    entries = pairs(2500)
    broken = [*entries[:1500], {"key": "bad"}, *entries[1500:]]
    told = edgecli("kv", "bulk", "put", file(broken), *where).err
    resume = told.split("Go on with:  edgecli ")[1].split()
    file([*entries[:1500], {"key": "good", "value": ""}, *entries[1500:]])

    done = edgecli(*resume)

    assert done.out == "Success! 1501 pairs written.\n"
    assert len(names(edgecli, where)) == 2501


def test_a_missing_file_is_one_line(edgecli, where):
    for command in ("put", "get", "delete"):
        done = edgecli("kv", "bulk", command, "nowhere.json", *where)
        assert (done.code, done.err) == (1, "Error: nowhere.json cannot be read: No such file or directory\n")


# Failing and going on


@pytest.fixture
def flaky(kv_server, monkeypatch):
    """Put a proxy with a plan in front of the server."""
    made = []

    def make(plan):
        proxy = FlakyProxy(kv_server.ready["api_base"], plan)
        monkeypatch.setenv("EDGE_API_BASE", proxy.__enter__())
        made.append(proxy)
        return proxy

    yield make
    for proxy in made:
        proxy.__exit__()


@pytest.mark.parametrize("trouble", [500, 503, 429, "drop", "late drop"])
def test_a_failed_batch_is_sent_again(edgecli, namespace_id, file, flaky, trouble):
    proxy = flaky(lambda number, body: trouble if number in (0, 2) else None)

    done = edgecli("kv", "bulk", "put", file(pairs(2500)), "--namespace-id", namespace_id)

    assert done.out == "Success! 2500 pairs written.\n"
    assert proxy.count == 5
    assert len(names(edgecli, ("--namespace-id", namespace_id))) == 2500


def test_of_a_key_that_stands_twice_the_later_value_stays(edgecli, namespace_id, file, flaky):
    """A batch that is sent again is not overtaken by the next one."""
    first, new_is_sent = threading.Event(), threading.Event()

    def plan(number, body):
        if b'"new"' in body:
            new_is_sent.set()
        elif not first.is_set():
            first.set()
            return 503
        else:
            new_is_sent.wait(0.5)
        return None

    flaky(plan)
    entries = [{"key": "k", "value": "old"}, *pairs(999), {"key": "k", "value": "new"}]
    where = ("--namespace-id", namespace_id)

    done = edgecli("kv", "bulk", "put", file(entries), *where)

    assert done.out == "Success! 1001 pairs written.\n"
    assert edgecli("kv", "key", "get", "k", *where).out == "new"


class HalfDone:
    """A namespace that cannot do `bad`, and ends at `end`."""

    def another(self):
        return nullcontext(self)

    def put_batch(self, items):
        if any(b'"end"' in item for item in items):
            raise Failed("ended")
        return ["bad"] if any(b'"bad"' in item for item in items) else []


@pytest.fixture
def half_done(monkeypatch, clean_environment):
    monkeypatch.setattr(bulk, "target", lambda *_, **__: nullcontext(HalfDone()))


def named(*keys):
    """One batch for each key. The rest is the same keys, so that each batch waits for the one before."""
    return [pair for key in keys for pair in ({"key": key, "value": ""}, *pairs(999))]


def test_keys_that_could_not_be_done_are_told_when_it_breaks_off_and_are_sent_again(half_done, file):
    done = call("kv", "bulk", "put", file(named("good", "bad", "end")), "--namespace-id", LOCAL_ID)

    assert done.code == 1
    assert done.err.startswith(
        "Error: ended\n"
        "1999 items are written; the first 1000 of the file need not be sent again.\n"
        "1 are not: bad.\n"
        "Go on with: "
    )
    assert done.err.endswith("--skip 1000\n")


def test_what_was_left_out_of_a_batch_that_failed_is_not_counted(half_done, file):
    ended = {"key": "ended", "value": "", "expiration": 1}
    entries = [*named("end")[:-5], *[ended] * 5]

    done = call("kv", "bulk", "put", file(entries), "--skip-expired", "--namespace-id", LOCAL_ID)

    assert done.err.startswith("Error: ended\n0 items are written.\n")


def test_a_refusal_is_not_sent_again(edgecli, namespace_id, file, flaky):
    proxy = flaky(lambda number, body: 400)

    done = edgecli("kv", "bulk", "put", file(pairs(5)), "--namespace-id", namespace_id)

    assert done.code == 1
    assert "planned [code: 1]" in done.err
    assert proxy.count == 1


def test_what_never_works_ends_with_counts_and_the_command_that_goes_on(edgecli, namespace_id, file, flaky):
    flaky(lambda number, body: "drop" if b"k02" in body else None)
    where = ("--namespace-id", namespace_id)

    done = edgecli("kv", "bulk", "put", file(pairs(3500)), *where)

    assert done.code == 1
    # The fourth batch may have been on its way beside the third, which fails.
    assert re.search(
        "2[05]00 items are written; the first 2000 of the file need not be sent again.", done.err
    )
    assert done.err.endswith(
        f"Go on with:  edgecli kv bulk put f.json --namespace-id {namespace_id} --skip 2000\n"
    )


def test_two_batches_are_in_flight_and_no_more(edgecli, namespace_id, file, flaky):
    lock, now, most = threading.Lock(), 0, 0
    both = threading.Event()

    def plan(number, body):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if now == 2:
                both.set()
        both.wait(60)
        with lock:
            now -= 1

    flaky(plan)

    assert edgecli("kv", "bulk", "put", file(pairs(6000)), "--namespace-id", namespace_id).code == 0
    assert most == 2


def test_ctrl_c_finishes_what_is_in_flight_and_tells_how_to_go_on(
    edgecli, namespace_id, file, flaky, project
):
    reached, go_on = threading.Event(), threading.Event()

    def plan(number, body):
        if number == 2:
            reached.set()
            go_on.wait(60)

    flaky(plan)
    command = ["kv", "bulk", "put", file(pairs(20_000)), "--namespace-id", namespace_id]
    running = subprocess.Popen(
        [sys.executable, "-m", "edgestead", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment(),
    )
    assert reached.wait(60)
    running.send_signal(signal.SIGINT)
    go_on.set()
    out, err = running.communicate(timeout=300)

    assert (running.returncode, out) == (1, "")
    assert "Traceback" not in err
    assert err.startswith("Error: Stopped.\n")
    written = int(err.split("\n")[1].split()[0])
    assert 2000 <= written < 20_000
    assert f"Go on with:  edgecli {' '.join(command)} --skip " in err
    assert len(names(edgecli, ("--namespace-id", namespace_id))) == written


def test_progress_is_a_line_every_ten_seconds_where_there_is_no_terminal(capsys):
    clock = [0]
    with Progress("Writing", "pairs", 1000, monotonic=lambda: clock[0]) as progress:
        for seconds, bytes_, items in ((9, 100, 10), (2, 400, 40), (1, 10, 1), (10, 240, 24)):
            clock[0] += seconds
            progress.advance(bytes_, items)

    assert capsys.readouterr().err == (
        "Writing: 50 %, 50 pairs, 5/s, 11 s left\nWriting: 75 %, 75 pairs, 3/s, 7 s left\n"
    )


def test_each_batch_advances_by_its_own_part_of_the_file_in_whatever_order_they_end(file):
    path = Path(file(pairs(1500)))
    last_is_sent, advanced = threading.Event(), []

    def send(_namespace, items):
        if len(items) == 1000:
            assert last_is_sent.wait(60)
        return batches.Sent([])

    class Advanced:
        def advance(self, bytes_, items):
            advanced.append((bytes_, items))
            last_is_sent.set()

    batches.send_all(path, bytes, send, nullcontext, Advanced())

    assert [items for _, items in advanced] == [500, 1000], "a bar shows nothing new for no bytes"
    assert min(bytes_ for bytes_, _ in advanced) > 0
    assert sum(bytes_ for bytes_, _ in advanced) == path.stat().st_size


def test_progress_of_unknown_length_claims_no_share_of_it(capsys):
    clock = [0]
    with Progress("Writing", "pairs", 0, monotonic=lambda: clock[0]) as progress:
        clock[0] += 10
        progress.advance(400, 40)

    assert capsys.readouterr().err == "Writing: 40 pairs, 4/s\n"


# Delete


@pytest.mark.parametrize("form", [lambda key: key, lambda key: {"name": key}])
def test_the_keys_of_a_file_are_deleted(edgecli, where, file, form):
    edgecli("kv", "bulk", "put", file(pairs(1500)), *where)
    keys = file([form(f"k{i:05d}") for i in range(1200)] + [form("not-there")], "keys.json")

    done = edgecli("kv", "bulk", "delete", keys, *where, stdin="y\n")

    assert done.out == (
        f"Delete all keys in keys.json from namespace {where[1]}? [y/n]: \nSuccess! 1201 keys deleted.\n"
    )
    assert len(names(edgecli, where)) == 300


@pytest.mark.parametrize(("answer", "code"), [("n\n", 0), ("\n", 0), ("", 1)])
def test_nothing_is_deleted_without_a_yes(edgecli, where, file, answer, code):
    edgecli("kv", "bulk", "put", file(pairs(2)), *where)

    done = edgecli("kv", "bulk", "delete", file(["k00000"]), *where, stdin=answer)

    assert done.code == code
    assert ("Not deleting\n" in done.out) == (code == 0)
    assert len(names(edgecli, where)) == 2


@pytest.mark.parametrize("yes", ["--yes", "-y", "--force", "-f"])
def test_yes_deletes_without_asking(edgecli, where, file, yes):
    edgecli("kv", "bulk", "put", file(pairs(2)), *where)

    assert edgecli("kv", "bulk", "delete", file(["k00000"]), *where, yes).out == "Success! 1 key deleted.\n"


@pytest.mark.parametrize("item", ["7", "{}", '{"name": 7}', "null", "{x}"])
def test_a_key_that_is_none_is_named(edgecli, where, file, item):
    done = edgecli("kv", "bulk", "delete", file(f'["a", {item}]'.encode()), *where, "--yes")

    assert done.code == 1
    assert "Item 1: expected a string, or an object with a name." in done.err


# Get


def test_values_are_printed_as_one_object(edgecli, where, file):
    edgecli("kv", "bulk", "put", file(pairs(250, "é")), *where)

    done = edgecli("kv", "bulk", "get", file([f"k{i:05d}" for i in range(251)]), *where)

    assert done.out.startswith('{\n  "k00000": "é",\n')
    assert json.loads(done.out) == {f"k{i:05d}": "é" if i < 250 else None for i in range(251)}


def test_what_key_list_prints_can_be_read_again(edgecli, where, file, project):
    edgecli("kv", "bulk", "put", file(pairs(3)), *where)
    (project / "list.json").write_text(edgecli("kv", "key", "list", *where).out)

    assert list(json.loads(edgecli("kv", "bulk", "get", "list.json", *where).out)) == [
        "k00000",
        "k00001",
        "k00002",
    ]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (b'"a\x01b"', "Item 101: the string is not valid.\n"),
        (b'"a"b', "Item 101: the string is not valid.\n"),
        (b'"a\xffb"', "Item 101: the string is not valid.\n"),
        (b'"\\ud800"', "Item 101: the string is not valid.\n"),
        (b"7", "Item 101: expected a string, or an object with a name.\n"),
        (b'"a b"', "Item 101 is refused.\n"),
        (b'{"name": ""}', "Item 101 is refused.\n"),
    ],
)
def test_a_key_that_cannot_be_read_is_named_by_its_number(edgecli, where, file, item, reason):
    good = b",".join(b'"k%d"' % i for i in range(101))

    done = edgecli("kv", "bulk", "get", file(b"[" + good + b"," + item + b"]"), *where)

    assert done.code == 1
    assert done.err.startswith(f"Error: {reason}")


def test_values_that_fit_into_no_single_answer_are_asked_for_in_parts(edgecli, where, file, project):
    (project / "large").write_bytes(b"x" * 9_000_000)
    for key in ("k0", "k1", "k2"):
        edgecli("kv", "key", "put", key, "--path", "large", *where)

    done = edgecli("kv", "bulk", "get", file(["k0", "no", "k1", "k2"]), *where)

    assert done.code == 0
    values = json.loads(done.out)
    assert list(values) == ["k0", "no", "k1", "k2"]
    assert [value and len(value) for value in values.values()] == [9_000_000, None, 9_000_000, 9_000_000]


def test_values_of_no_keys_are_an_empty_object(edgecli, where, file):
    assert edgecli("kv", "bulk", "get", file([]), *where).out == "{}\n"


# Export


def test_a_namespace_leaves_as_the_file_that_put_takes(edgecli, file, where):
    written = [
        {"key": "a/text", "value": "ü\n", "metadata": {"by": "ops"}},
        {"key": "b", "value": "AAH/", "base64": True},
        {"key": "c", "value": "", "expiration": 4_000_000_000},
    ]
    edgecli("kv", "bulk", "put", file(written), *where)

    left = edgecli("kv", "bulk", "export", *where)

    assert (left.code, json.loads(left.out)) == (0, written)
    assert edgecli("kv", "bulk", "put", file(left.out.encode(), "again.json"), *where).code == 0
    assert json.loads(edgecli("kv", "bulk", "export", *where).out) == written
    assert json.loads(edgecli("kv", "bulk", "export", "--prefix", "b", *where).out) == written[1:2]
    edgecli("kv", "bulk", "delete", file([one["key"] for one in written], "keys.json"), "--yes", *where)
    assert json.loads(edgecli("kv", "bulk", "export", *where).out) == []


def test_pairs_that_expired_since_an_export_are_left_out_if_asked(edgecli, where, file):
    ended = {"key": "ended", "value": "x", "expiration": 1_000_000_000}
    stays = {"key": "stays", "value": "x", "expiration": 4_000_000_000}
    pairs = file([ended, stays, {"key": "no end", "value": '"expiration": 1'.replace(" ", "_")}, ended])

    refused = edgecli("kv", "bulk", "put", pairs, *where)
    assert (refused.code, "Item 0 is refused" in refused.err) == (1, True)
    assert "60 seconds in the future" in refused.err

    pairs = file([ended, stays, {"key": "ttl", "value": "x", "expiration": 1, "expiration_ttl": 600}, ended])
    done = edgecli("kv", "bulk", "put", "--skip-expired", pairs, *where)
    assert (done.code, done.out) == (0, "Success! 2 pairs written.\n"), done.err
    assert "2 pairs left out" in done.err
    left = json.loads(edgecli("kv", "bulk", "export", *where).out)
    assert [one["key"] for one in left] == ["stays", "ttl"]

    wrong = file([ended, stays, {"key": "stays", "value": "x", "expiration_ttl": 1}])
    told = edgecli("kv", "bulk", "put", "--skip-expired", wrong, *where)
    assert (told.code, "Item 2 is refused" in told.err, "--skip-expired" in told.err) == (1, True, True)


class Vanishing:
    """A namespace whose second value is refused so."""

    def __init__(self, status, code):
        error = {"code": code, "message": "gone"}
        self.refusal = Refused("GET", status, [error], "", Source("test", "http://127.0.0.1", {}, None))

    def entries(self, _prefix):
        yield from ({"name": "a"}, {"name": "b"})

    def get(self, key):
        if key == "b":
            raise self.refusal
        return [b"value"]


def test_an_export_leaves_out_a_key_that_went_but_fails_when_the_namespace_did():
    left = [{"key": "a", "value": "value"}]
    assert list(bulk._pairs(Vanishing(404, 10009), "")) == left
    with pytest.raises(Refused):
        list(bulk._pairs(Vanishing(404, 10013), ""))
