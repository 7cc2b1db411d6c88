"""Objects and the key-value store in a real server."""

import os
import signal

import pytest

SOURCE = """
from edgestead import StatefulObject

class Cache(StatefulObject):
    async def call(self, method, *arguments, **named):
        return await getattr(self.env.CACHE, method)(*arguments, **named)

    async def round(self, key, size):
        await self.env.CACHE.put(key, b"x" * size)
        return len(await self.env.CACHE.get(key, type="bytes"))

    async def unbound(self):
        return await self.env.OTHER.get("k")
"""


@pytest.fixture
def server(new_server, tmp_path):
    """A server with the namespace of `server.namespace` bound as CACHE."""
    source, file = tmp_path / "cache.py", tmp_path / "edge.toml"
    source.write_text(SOURCE)
    made = new_server("--config", str(file))
    file.write_text("")
    made.start()
    path = f"/accounts/{made.ready['account_id']}/storage/kv/namespaces"
    made.namespace = made.call("POST", path, {"title": "cache"}).result["id"]
    made.values = f"{path}/{made.namespace}"
    made.stop()
    file.write_text(f'[objects]\npaths = ["{source}"]\n[objects.bindings]\nCACHE = "{made.namespace}"\n')
    return made.start()


def call(server, method, *arguments, **named):
    return server.call_object("Cache/a/call", method, *arguments, **named).result


def test_what_objects_write_the_api_reads_and_the_other_way(server):
    call(server, "put", "k", "vé", metadata={"a": 1}, expirationTtl=600)

    assert server.call("GET", f"{server.values}/values/k").body == "vé"
    assert server.call("GET", f"{server.values}/metadata/k").result == {"a": 1}
    assert call(server, "get_with_metadata", "k") == {"value": "vé", "metadata": {"a": 1}}
    (key,) = call(server, "list", prefix="k", limit=5)["keys"]
    assert (key["name"], key["metadata"]) == ("k", {"a": 1})
    assert key["expiration"] > 0
    assert server.call("DELETE", f"{server.values}/values/k").status == 200
    assert call(server, "get", "k") is None
    call(server, "put", "k", '{"b": [1]}')
    assert call(server, "get", "k", "json") == {"b": [1]}
    call(server, "delete", "k")
    assert call(server, "list") == {"keys": [], "list_complete": True, "cursor": ""}
    assert server.call_object("Cache/a/round", "large", 3_000_000).result == 3_000_000
    refused(server)
    outlive_control(server)


def refused(server):
    for arguments, words in (
        (("get", ""), "The key is empty"),
        (("put", "k", "v", None), "positional"),
        (("get", "k" * 513), "exceeds key length"),
    ):
        answer = server.call_object("Cache/a/call", *arguments)
        assert answer.status == 422
        assert words in answer.body["errors"][0]["message"]
    assert "no namespace is bound" in server.call_object("Cache/a/unbound").body["errors"][0]["message"]


def outlive_control(server):
    pid = server.children()["control"]
    os.kill(pid, signal.SIGKILL)
    server.wait_for_life("control", pid)
    call(server, "put", "after", "v")
    assert call(server, "get", "after") == "v"


def test_a_binding_with_the_name_of_a_class_stops_the_start(new_server, tmp_path):
    source, file = tmp_path / "cache.py", tmp_path / "edge.toml"
    source.write_text(SOURCE)
    file.write_text(f'[objects]\npaths = ["{source}"]\n[objects.bindings]\nCache = "{"c" * 32}"\n')
    server = new_server("--config", str(file))

    server.launch()

    assert server.wait() == 1
    assert "Cache is the name of a class already" in server.log
