"""Where edgecli kv finds its namespace, its server and its credentials."""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import platformdirs
import pytest

from edgestead import config
from edgestead.cli.failure import Failed
from edgestead.cli.kv import jsonc
from edgestead.cli.source import default_data_dir, find_source
from edgestead.store.kv import BLOB_GRACE_SECONDS

from .conftest import call

IDS = {name: name * 32 for name in "abcdef"}


def put_and_ids(*options):
    """Which local namespace a put goes to."""
    done = call("kv", "key", "put", "k", "v", "--local", *options)
    return done.out.rpartition("namespace ")[2].rstrip(".\n") if done.code == 0 else done.err


def entry(**members):
    return {"binding": "KV", **members}


# Which file


@pytest.mark.parametrize(
    "names",
    [
        ("edge.json", "edge.jsonc"),
        ("edge.jsonc", "edge.toml"),
        ("edge.toml", "wrangler.json"),
        ("wrangler.json", "wrangler.jsonc"),
        ("wrangler.jsonc", "wrangler.toml"),
    ],
)
def test_of_two_files_in_one_folder_the_first_name_counts(clean_environment, names):
    for name, id_ in zip(names, "ab", strict=True):
        write(clean_environment / name, {"kv_namespaces": [entry(id=IDS[id_])]})

    assert put_and_ids("--binding", "KV") == IDS["a"]


def test_the_nearest_file_upwards_counts(clean_environment, monkeypatch):
    write(clean_environment / "edge.json", {"kv_namespaces": [entry(id=IDS["a"])]})
    below = clean_environment / "x" / "y"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert put_and_ids("--binding", "KV") == IDS["a"]
    assert (clean_environment / ".edge" / "state" / "kv.db").exists()

    write(below.parent / "wrangler.toml", {"kv_namespaces": [entry(id=IDS["b"])]})
    assert put_and_ids("--binding", "KV") == IDS["b"]


def test_a_file_may_be_named(clean_environment):
    write(clean_environment / "edge.json", {"kv_namespaces": [entry(id=IDS["a"])]})
    other = clean_environment / "other"
    other.mkdir()
    write(other / "my.toml", {"kv_namespaces": [entry(id=IDS["b"])]})

    assert put_and_ids("--binding", "KV", "--config", "other/my.toml") == IDS["b"]
    assert (other / ".edge" / "state").exists()
    assert "cannot be read: No such file" in put_and_ids("--binding", "KV", "-c", "nowhere.toml")


def write(path, data):
    """A configuration in the form that its name asks for."""
    if path.suffix != ".toml":
        path.write_text(json.dumps(data))
        return
    lines = []
    for member, value in data["kv_namespaces"][0].items():
        lines.append(f"{member} = {json.dumps(value)}")
    path.write_text("[[kv_namespaces]]\n" + "\n".join(lines) + "\n")


BAD_FILES = (
    ("edge.toml", "x = ", "cannot be read"),
    ("edge.json", "{", "cannot be read"),
    ("edge.json", "[]", "must hold one object"),
    ("edge.jsonc", "/* ", "cannot be read"),
    ("edge.json", b"\xff", "cannot be read"),
    ("edge.json", "[" * 100_000, "cannot be read"),
    ("edge.json", '{"kv_namespaces": {}}', "must be an array"),
    ("edge.json", '{"kv_namespaces": [1]}', "must be an array"),
    ("edge.json", '{"kv_namespaces": [{"binding": "KV", "id": 7}]}', "must be text"),
    ("edge.json", '{"kv_namespaces": [{"binding": "KV"}]}', "neither id nor preview_id"),
    ("edge.json", '{"kv_namespaces": [{"binding": "KV", "id": "short"}]}', "32 hexadecimal digits"),
    ("edge.json", '{"kv_namespaces": [{"binding": "OTHER"}]}', "It has: OTHER"),
    ("edge.json", "{}", "There is no binding KV"),
    ("edge.json", " " * (1 << 20) + "{}", "larger than"),
)


@pytest.mark.parametrize(("name", "text", "reason"), BAD_FILES)
def test_a_file_that_does_not_help_is_one_clear_error(clean_environment, name, text, reason):
    (clean_environment / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    assert reason in put_and_ids("--binding", "KV")


def test_a_binding_without_any_file_says_which_files_are_looked_for(clean_environment):
    assert "edge.json, edge.jsonc, edge.toml" in put_and_ids("--binding", "KV")


def test_comments_and_last_commas_are_taken_and_strings_are_left_alone():
    text = '// a\n{"a": "// no, /* no */ ,]", /* b\n */ "b": [1, 2,], "c\\"": {"d": 1,}, } // end'

    assert jsonc.loads(text) == {"a": "// no, /* no */ ,]", "b": [1, 2], 'c"': {"d": 1}}
    assert len(jsonc.blanked(text)) == len(text)


# Which id

BOTH = {"id": IDS["a"], "preview_id": IDS["b"]}
PREVIEWS = (
    (BOTH, (), "Choose with --preview or --preview false", IDS["a"]),
    (BOTH, ("--preview",), IDS["b"], IDS["b"]),
    (BOTH, ("--preview", "false"), IDS["a"], IDS["a"]),
    (BOTH, ("--no-preview",), IDS["a"], IDS["a"]),
    ({"id": IDS["a"]}, (), IDS["a"], IDS["a"]),
    ({"id": IDS["a"]}, ("--preview",), "has no preview_id", "has no preview_id"),
    ({"preview_id": IDS["b"]}, (), IDS["b"], "has no id"),
    ({"preview_id": IDS["b"]}, ("--preview=false",), "has no id", "has no id"),
    ({"preview_id": IDS["b"]}, ("--preview=true",), IDS["b"], IDS["b"]),
)


@pytest.mark.parametrize(("ids", "options", "writing", "reading"), PREVIEWS)
def test_what_changes_data_asks_which_id_and_what_reads_takes_the_production_one(
    clean_environment, ids, options, writing, reading
):
    write(clean_environment / "edge.json", {"kv_namespaces": [entry(**ids)]})
    (clean_environment / "f.json").write_text('["k"]')
    where = ("--binding", "KV", "--local", *options)

    def outcome(*command, stdin=""):
        done = call("kv", *command, *where, stdin=stdin)
        return done.out + done.err

    assert writing in outcome("key", "put", "k", "v")
    assert writing in outcome("key", "delete", "k")
    assert writing in outcome("bulk", "delete", "f.json", stdin="n\n")
    if len(reading) == 32:
        call("kv", "key", "put", "here", "v", "--namespace-id", reading, "--local")
        assert "here" in outcome("key", "list")
        assert outcome("key", "get", "here") == "v"
        assert outcome("bulk", "get", "f.json") == '{\n  "k": null\n}\n'
    else:
        assert reading in outcome("key", "list")
        assert reading in outcome("key", "get", "k")


def test_environments_do_not_inherit(clean_environment):
    data = {
        "kv_namespaces": [entry(id=IDS["a"])],
        "env": {"own": {"kv_namespaces": [entry(id=IDS["b"])]}, "none": {}},
    }
    (clean_environment / "edge.json").write_text(json.dumps(data))

    assert put_and_ids("--binding", "KV") == IDS["a"]
    assert put_and_ids("--binding", "KV", "--env", "own") == IDS["b"]
    assert "do not inherit" in put_and_ids("--binding", "KV", "-e", "none")
    assert 'no environment "other"' in put_and_ids("--binding", "KV", "--env", "other")


# Which folder


def test_the_local_store_may_be_put_elsewhere_relative_to_the_current_folder(clean_environment, monkeypatch):
    (clean_environment / "edge.json").write_text("{}")
    below = clean_environment / "below"
    below.mkdir()
    monkeypatch.chdir(below)

    assert put_and_ids("--namespace-id", IDS["a"], "--persist-to", "data") == IDS["a"]

    assert (below / "data" / "kv.db").exists()
    assert not (clean_environment / ".edge").exists()


def test_the_local_store_is_the_servers_format(clean_environment, new_server, monkeypatch):
    put_and_ids("--namespace-id", IDS["a"], "--persist-to", "data")
    server = new_server(name="project/data").start()
    try:
        held = call("kv", "key", "get", "k", "--namespace-id", IDS["a"], "--local", "--persist-to", "data")
    finally:
        server.close()

    assert held.code == 1
    assert "is in use by process" in held.err


def test_what_a_crash_left_in_the_local_store_goes_with_the_next_write(clean_environment):
    where = ("--namespace-id", IDS["a"], "--local")
    call("kv", "key", "put", "k", "v", *where)
    blobs = clean_environment / ".edge" / "state" / "kv-blobs"
    for name, age_seconds in (("old", 2 * BLOB_GRACE_SECONDS), ("new", 0)):
        (blobs / name).write_bytes(b"stray")
        os.utime(blobs / name, times=(time.time() - age_seconds,) * 2)

    call("kv", "key", "put", "k", "w", *where)

    assert [path.name for path in blobs.iterdir()] == ["new"]


# Which server


def source(tmp_path, **environ):
    return find_source({"XDG_DATA_HOME": str(tmp_path), **environ})


def local_server(tmp_path):
    folder = tmp_path / "edgestead"
    folder.mkdir()
    (folder / "server.json").write_text('{"api_base": "http://127.0.0.1:1/client/v4"}')
    (folder / "credentials.json").write_text('{"api_token": "local-token", "account_id": "local-account"}')


OURS = {"EDGE_API_BASE": "http://ours/client/v4", "EDGE_TOKEN": "our-token"}
THEIRS = {"CLOUDFLARE_API_BASE_URL": "http://theirs/client/v4", "CLOUDFLARE_API_TOKEN": "their-token"}


def test_address_and_credentials_come_from_one_source(tmp_path):
    local_server(tmp_path)

    ours, theirs, local = source(tmp_path, **OURS, **THEIRS), source(tmp_path, **THEIRS), source(tmp_path)

    assert (ours.api_base, ours.headers) == (OURS["EDGE_API_BASE"], {"Authorization": "Bearer our-token"})
    assert (theirs.api_base, theirs.headers) == (
        THEIRS["CLOUDFLARE_API_BASE_URL"],
        {"Authorization": "Bearer their-token"},
    )
    assert (local.api_base, local.headers, local.account_id) == (
        "http://127.0.0.1:1/client/v4",
        {"Authorization": "Bearer local-token"},
        "local-account",
    )


def test_a_key_goes_with_its_email(tmp_path):
    pair = {"EDGE_API_BASE": "http://ours", "EDGE_KEY": "k", "EDGE_EMAIL": "e@x"}

    assert source(tmp_path, **pair).headers == {"X-Auth-Email": "e@x", "X-Auth-Key": "k"}


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({}, "No server is named and none is running"),
        ({"EDGE_TOKEN": "t"}, "no address for it"),
        ({"EDGE_TOKEN": "t", **THEIRS}, "no address for it"),
        ({"EDGE_API_BASE": "http://ours"}, "no credentials for it"),
        ({"EDGE_API_BASE": "http://ours", "EDGE_KEY": "k"}, "no credentials for it"),
        ({"EDGE_API_BASE": "http://ours", "CLOUDFLARE_API_TOKEN": "t"}, "no credentials for it"),
        ({"CLOUDFLARE_API_TOKEN": "t"}, "No server is named"),
        ({"EDGE_API_BASE": "http://ours", "EDGE_TOKEN": "a\r\nb"}, "cannot be sent"),
    ],
)
def test_halves_of_two_sources_are_never_joined(tmp_path, environ, reason):
    with pytest.raises(Failed, match=reason):
        source(tmp_path, **environ)


@pytest.mark.parametrize(
    "base", ["ours", "ftp://ours", "http://", "http://user:pw@ours", "http://ours:x", "http://o?a"]
)
def test_an_address_that_is_none_is_refused(clean_environment, monkeypatch, base):
    monkeypatch.setenv("EDGE_API_BASE", base)
    monkeypatch.setenv("EDGE_TOKEN", "t")

    done = call("kv", "namespace", "list")

    assert done.code == 1
    assert "is not an address" in done.err


def test_a_server_that_is_not_there_is_one_clear_error(clean_environment, monkeypatch):
    monkeypatch.setenv("EDGE_API_BASE", "http://127.0.0.1:9/client/v4")
    monkeypatch.setenv("EDGE_TOKEN", "secret-canary")

    done = call("kv", "namespace", "list")

    assert done.code == 1
    assert "http://127.0.0.1:9/client/v4 (EDGE_API_BASE) cannot be reached: Connection refused." in done.err
    assert "canary" not in done.err


def test_wrong_credentials_say_where_they_came_from(project, monkeypatch):
    monkeypatch.setenv("EDGE_TOKEN", "x" * 40)

    done = call("kv", "namespace", "list")

    assert done.code == 1
    assert "[code: 10000]" in done.err
    assert "The address and the credentials come from EDGE_API_BASE." in done.err
    assert "xxxx" not in done.err


@pytest.mark.parametrize("home", ["", "/data"])
def test_the_servers_folder_is_where_the_platform_says(monkeypatch, home):
    monkeypatch.setenv("XDG_DATA_HOME", home)

    expected = platformdirs.user_data_dir("edgestead", appauthor=False)
    assert str(default_data_dir({"XDG_DATA_HOME": home})) == expected


def test_the_servers_folder_is_the_one_that_the_environment_names(monkeypatch):
    monkeypatch.setenv("EDGE_DATA_DIR", "/srv/edge")

    assert str(default_data_dir(os.environ)) == "/srv/edge"
    assert config.default_data_dir() == config.load({}, None).data_dir == default_data_dir(os.environ)
    assert str(config.load({"data-dir": "/elsewhere"}, None).data_dir) == "/elsewhere"


def test_the_account_is_the_configurations_then_the_sources_then_the_only_one(
    project, kv_server, monkeypatch
):
    right = kv_server.ready["account_id"]
    monkeypatch.setenv("EDGE_ACCOUNT_ID", "f" * 32)
    assert json.loads(call("kv", "namespace", "list").out) == []

    (project / "edge.json").write_text(json.dumps({"account_id": right}))
    assert call("kv", "namespace", "create", "account-of-config").code == 0

    (project / "edge.json").unlink()
    monkeypatch.delenv("EDGE_ACCOUNT_ID")
    assert "account-of-config" in call("kv", "namespace", "list").out


class Redirect(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.headers["Authorization"])
        self.send_response(302)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


def test_a_redirect_is_not_followed(clean_environment, monkeypatch):
    server = HTTPServer(("127.0.0.1", 0), Redirect)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("EDGE_API_BASE", f"http://127.0.0.1:{server.server_port}/client/v4")
    monkeypatch.setenv("EDGE_TOKEN", "t")
    monkeypatch.setenv("EDGE_ACCOUNT_ID", "a" * 32)
    try:
        done = call("kv", "namespace", "list")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert done.code == 1
    assert server.seen == ["Bearer t"]
