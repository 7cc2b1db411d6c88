"""edgecli kv key: what the commands print and return."""

import json
import os
import subprocess
import sys
import time

import pytest

from edgestead.testing.server import environment

LOCAL_ID = "a" * 32


@pytest.fixture(params=["remote", "local"])
def where(request, edgecli):
    """The same commands on the server and in the project's folder."""
    if request.param == "local":
        return ("--namespace-id", LOCAL_ID, "--local")
    return ("--namespace-id", request.getfixturevalue("namespace_id"))


def test_a_value_comes_back_byte_for_byte_and_nothing_is_added(edgecli, where):
    put = edgecli("kv", "key", "put", "k", "v é", *where)
    got = edgecli("kv", "key", "get", "k", *where)

    assert put == (0, f'Writing 4 bytes to key "k" in namespace {where[1]}.\n', "", put.bytes)
    assert (got.code, got.bytes, got.err) == (0, "v é".encode(), "")


def test_text_is_decoded_and_ends_with_a_newline(edgecli, where, project):
    (project / "v").write_bytes(b"a\xe2\x82\xac\xffb\xe2")
    edgecli("kv", "key", "put", "k", "--path", "v", *where)

    assert edgecli("kv", "key", "get", "k", *where).bytes == b"a\xe2\x82\xac\xffb\xe2"
    assert edgecli("kv", "key", "get", "k", "--text", *where).bytes == "a€\ufffdb\ufffd\n".encode()


def test_a_missing_key_fails(edgecli, where):
    got = edgecli("kv", "key", "get", "nope", *where)

    assert (got.code, got.out) == (1, "")
    assert "key not found [code: 10009]" in got.err


def test_a_value_may_be_empty(edgecli, where):
    assert edgecli("kv", "key", "put", "k", "", *where).code == 0
    assert edgecli("kv", "key", "get", "k", *where).bytes == b""


def test_what_begins_with_a_dash_stands_behind_two(edgecli, where):
    assert edgecli("kv", "key", "put", *where, "--", "-k", "-5").code == 0
    assert edgecli("kv", "key", "get", *where, "--", "-k").out == "-5"


def test_a_value_may_be_bytes_that_are_no_text(edgecli, where):
    put = edgecli("kv", "key", "put", "k", "a\udcffb", *where)

    assert put.out == f'Writing 3 bytes to key "k" in namespace {where[1]}.\n'
    assert edgecli("kv", "key", "get", "k", *where).bytes == b"a\xffb"


def test_a_value_may_come_from_a_file_of_any_size(edgecli, where, project):
    content = bytes(range(256)) * 4_000
    (project / "blob").write_bytes(content)

    put = edgecli("kv", "key", "put", "dir/blob", "--path", "blob", "--metadata", '{"a": "é"}', *where)

    assert put.out == f'Writing the content of blob to key "dir/blob" in namespace {where[1]}.\n'
    assert edgecli("kv", "key", "get", "dir/blob", *where).bytes == content
    assert '"a": "é"' in edgecli("kv", "key", "list", "--with-metadata", *where).out


def test_a_value_may_come_from_a_pipe(edgecli, where, project):
    os.mkfifo("pipe")
    writer = subprocess.Popen([sys.executable, "-c", "open('pipe', 'wb').write(b'piped')"])

    assert edgecli("kv", "key", "put", "k", "--path", "pipe", *where).code == 0

    writer.wait()
    assert edgecli("kv", "key", "get", "k", *where).bytes == b"piped"


def test_a_list_shows_exactly_name_and_expiration(edgecli, where):
    expiration = int(time.time()) + 3600
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiration))
    edgecli("kv", "key", "put", "b", "v", "--expiration", str(expiration), "--metadata", '{"m":1}', *where)
    edgecli("kv", "key", "put", "a/é", "v", *where)

    plain = edgecli("kv", "key", "list", *where)
    everything = edgecli("kv", "key", "list", "--with-metadata", "--epoch", *where)

    assert plain.out == (
        f'[\n  {{\n    "name": "a/é"\n  }},\n  {{\n    "name": "b",\n    "expiration": "{iso}"\n  }}\n]\n'
    )
    assert json.loads(everything.out) == [
        {"name": "a/é"},
        {"name": "b", "expiration": expiration, "metadata": {"m": 1}},
    ]


def test_a_list_of_nothing_is_an_empty_array(edgecli, where):
    assert edgecli("kv", "key", "list", *where).out == "[]\n"


def test_a_list_takes_a_prefix_and_follows_every_page(edgecli, where, project):
    pairs = [{"key": f"{'a' if i % 2 else 'b'}{i:04d}", "value": ""} for i in range(2400)]
    (project / "pairs.json").write_text(json.dumps(pairs))
    edgecli("kv", "bulk", "put", "pairs.json", *where)

    names = [entry["name"] for entry in json.loads(edgecli("kv", "key", "list", "--prefix", "a", *where).out)]

    assert names == [f"a{i:04d}" for i in range(1, 2400, 2)]


def test_a_ttl_takes_precedence_over_an_expiration(edgecli, where):
    now = time.time()
    edgecli("kv", "key", "put", "k", "v", "--ttl", "100", "--expiration", str(int(now) + 9999), *where)

    (entry,) = json.loads(edgecli("kv", "key", "list", "--epoch", *where).out)
    assert 90 < entry["expiration"] - now < 9_000


def test_a_deletion_says_what_it_deletes_and_may_be_repeated(edgecli, where):
    edgecli("kv", "key", "put", "k", "v", *where)

    first = edgecli("kv", "key", "delete", "k", *where)
    second = edgecli("kv", "key", "delete", "k", *where)

    assert first == second == (0, f'Deleting key "k" in namespace {where[1]}.\n', "", first.bytes)
    assert edgecli("kv", "key", "get", "k", *where).code == 1


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("a b", "may not hold blanks"),
        ("x" * 513, "exceeds key length limit"),
        (".", "may not be"),
        ("", "The key is empty."),
        ("a\udcff", "An argument holds \\xff, which is not UTF-8."),
    ],
)
def test_a_key_that_cannot_be_fails(edgecli, where, key, reason):
    done = edgecli("kv", "key", "put", key, "v", *where)

    assert done.code == 1
    assert reason in done.err


def test_an_expiration_that_has_passed_fails(edgecli, where):
    done = edgecli("kv", "key", "put", "k", "v", "--expiration", "1000", *where)

    assert done.code == 1
    assert "[code: 10033]" in done.err


WRONG_CALLS = (
    (("put", "k"), "Exactly one of VALUE and --path"),
    (("put", "k", "v", "--path", "f"), "Exactly one of VALUE and --path"),
    (("put", "k", "v", "--ttl", "59"), "--ttl"),
    (("put", "k", "v", "--ttl", "soon"), "--ttl"),
    (("put", "k", "v", "--expiration", "1.5"), "--expiration"),
    (("put", "k", "v", "--metadata", "{"), "must be JSON"),
    (("put", "k", "v", "--metadata", "[1]"), "must be a JSON object"),
    (("put", "k", "v", "--metadata", json.dumps({"a": "x" * 1017})), "1025 bytes of JSON"),
    (("put",), "Missing argument 'KEY'"),
    (("get",), "Missing argument 'KEY'"),
    (("get", "k", "--text=maybe"), "--text takes true or false, not 'maybe'"),
    (("get", "k", "--persist-to", "x"), "needs --local"),
    (("get", "k", "--local", "--remote"), "exclude each other"),
    (("get", "k", "--nonsense"), "No such option"),
    (("get", "k", "l"), "unexpected extra argument"),
    (("put", "k", "-5"), "No such option '-5'. An argument that begins with - stands behind --, at the end."),
    (("get", "k", "--namespace-id", ""), "--namespace-id is empty."),
)


@pytest.mark.parametrize(("arguments", "reason"), WRONG_CALLS)
def test_a_wrong_call_is_told_from_a_failure(edgecli, arguments, reason):
    done = edgecli("kv", "key", arguments[0], "--namespace-id", LOCAL_ID, *arguments[1:])

    assert (done.code, done.out) == (2, "")
    assert reason in done.err


@pytest.mark.parametrize("command", [("put", "k", "v"), ("get", "k"), ("list",), ("delete", "k")])
@pytest.mark.parametrize("options", [(), ("--namespace-id", LOCAL_ID, "--binding", "KV")])
def test_exactly_one_of_binding_and_id_is_needed(edgecli, command, options):
    done = edgecli("kv", "key", *command, *options)

    assert done.code == 2
    assert "Exactly one of --binding and --namespace-id is needed." in done.err


def test_a_missing_file_is_one_line(edgecli):
    done = edgecli("kv", "key", "put", "k", "--path", "nowhere", "--namespace-id", LOCAL_ID)

    assert done == (1, "", "Error: nowhere cannot be read: No such file or directory\n", b"")


def test_a_file_that_is_too_long_is_not_sent(edgecli, project):
    with (project / "long").open("wb") as file:
        file.truncate(26_214_401)

    done = edgecli("kv", "key", "put", "k", "--path", "long", "--namespace-id", LOCAL_ID)

    assert done.code == 1
    assert "too long" in done.err


SWITCHES = (
    ((), False),
    (("--text",), True),
    (("--text", "true"), True),
    (("--text", "false"), False),
    (("--text=true",), True),
    (("--text=false",), False),
    (("--no-text",), False),
    (("--text", "--no-text"), False),
)


@pytest.mark.parametrize(("spelled", "text"), SWITCHES)
@pytest.mark.parametrize("first", [True, False])
def test_a_boolean_may_be_spelled_in_every_way(edgecli, spelled, text, first):
    where = ("--namespace-id", LOCAL_ID, "--local")
    edgecli("kv", "key", "put", "k", "v", *where)

    arguments = [*spelled, "k"] if first else ["k", *spelled]

    assert edgecli("kv", "key", "get", *arguments, *where).out == ("v\n" if text else "v")


def test_what_looks_like_a_switch_may_be_another_options_value_or_an_argument(edgecli):
    where = ("--namespace-id", LOCAL_ID, "--local")
    edgecli("kv", "key", "put", *where, "--", "--text", "true")

    assert edgecli("kv", "key", "get", *where, "--", "--text").out == "true"
    assert json.loads(edgecli("kv", "key", "list", "--prefix", "--text", *where).out) == [{"name": "--text"}]


def test_output_that_nobody_reads_ends_quietly(edgecli, namespace_id, project):
    (project / "big").write_bytes(bytes(5_000_000))
    where = ("--namespace-id", namespace_id)
    edgecli("kv", "key", "put", "k", "--path", "big", *where)

    command = [sys.executable, "-m", "edgestead", "kv", "key", "get", "k", *where]
    getting = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment()
    )
    getting.stdout.read(10)
    getting.stdout.close()

    assert getting.stderr.read() == b""
    assert getting.wait() == 1
    getting.stderr.close()


FORBIDDEN = {
    "asyncio",
    "starlette",
    "msgspec",
    "rich",
    "logging",
    "importlib.metadata",
    "apsw",
    "edgestead.store",
}


@pytest.mark.parametrize("configuration", [None, "edge.toml", "edge.jsonc"])
def test_getting_a_key_imports_nothing_heavy(edgecli, namespace_id, project, configuration):
    edgecli("kv", "key", "put", "k", "v", "--namespace-id", namespace_id)
    where = ["--namespace-id", namespace_id]
    if configuration is not None:
        text = f'kv_namespaces = [{{ binding = "KV", id = "{namespace_id}" }}]'
        json_text = f'{{"kv_namespaces": [{{"binding": "KV", "id": "{namespace_id}"}},],}} // comment'
        (project / configuration).write_text(text if configuration == "edge.toml" else json_text)
        where = ["--binding", "KV"]
    program = f"""
import sys
from edgestead.cli.main import cli
try:
    cli.main(["kv", "key", "get", "k", *{where!r}], prog_name="edgecli")
except SystemExit as end:
    assert end.code == 0, end.code
print(sorted({FORBIDDEN!r} & sys.modules.keys()), file=sys.stderr)
"""

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | environment()
    )

    assert (done.stdout, done.stderr) == ("v", "[]\n")
