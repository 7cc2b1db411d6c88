"""What leaves an object by `ctx.fetch` and by key-value namespaces: nothing before its writes are durable."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgestead import Request, Response, StatefulObject
from edgestead.http1 import client, limits
from edgestead.http1.messages import BodyBroken
from edgestead.objects.errors import FetchError, KeyValueError
from edgestead.objects.runtime import bindings, outgoing
from edgestead.objects.runtime.env import Bindings
from edgestead.objects.runtime.node import Node
from edgestead.server.objects.host import Host
from tests.objects.hosts import Client, serve
from tests.objects.logs import Logs
from tests.objects.nodes import run

ANSWERS: list[tuple[bytes, int, bytes]] = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", 200, b"hi"),
    (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
    (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", 201, b"x"),
    (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 503, b""),
]
NO_ANSWERS: list[bytes] = [
    b"",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Le",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000,
]
BROKEN_BODIES: list[bytes] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
]
BAD_REQUESTS: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"url": "ftp://example.com/"}, ValueError),
    ({"url": "http:///path"}, ValueError),
    ({"url": "http://user:secret@example.com/"}, ValueError),
    ({"url": "http://example.com:99999/"}, ValueError),
    ({"url": "http://example.com/" + "x" * 9_000}, ValueError),
    ({"url": "/relative"}, ValueError),
    ({"url": 1}, TypeError),
    ({"url": "http://example.com/", "method": "GET / HTTP/1.1"}, ValueError),
    ({"url": "http://example.com/", "headers": {"a": "b\r\nc: d"}}, ValueError),
    ({"url": "http://example.com/", "headers": {"connection": "close"}}, ValueError),
    ({"url": "http://example.com/", "body": {"a": 1}}, TypeError),
    ({"url": "http://example.com/", "redirect": "error"}, TypeError),
]


async def confirmed() -> None:
    """Of an object that has written nothing."""


def against(
    answer: Callable[[bytes], bytes], script: Callable[[str], Awaitable[Any]]
) -> tuple[Any, list[bytes]]:
    """Run a script with the URL of a server that answers each connection's bytes so; what it was sent."""
    sent: list[bytes] = []

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        sent.append(head + await reader.readexactly(int(length or 0)))
        writer.write(answer(sent[-1]))
        await writer.drain()
        writer.close()

    async def main() -> Any:
        server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
        async with server, asyncio.timeout(120):
            return await script(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    return asyncio.run(main()), sent


@pytest.mark.parametrize(("raw", "status", "body"), ANSWERS)
def test_every_form_of_an_answer_is_read(raw: bytes, status: int, body: bytes) -> None:
    async def script(url: str) -> None:
        answer = await outgoing.fetch(confirmed, f"{url}/a?b=c d")
        assert (answer.status, await answer.body(), answer.ok) == (status, body, status < 300)

    _, sent = against(lambda _: raw, script)
    assert sent[0].startswith(b"GET /a?b=c%20d HTTP/1.1\r\nhost: 127.0.0.1:")


@pytest.mark.parametrize("raw", NO_ANSWERS)
def test_what_is_no_answer_is_an_error(raw: bytes) -> None:
    async def script(url: str) -> None:
        with pytest.raises(FetchError):
            await outgoing.fetch(confirmed, url)

    against(lambda _: raw, script)


@pytest.mark.parametrize("raw", BROKEN_BODIES)
def test_a_body_that_ends_early_is_an_error(raw: bytes) -> None:
    async def script(url: str) -> None:
        answer = await outgoing.fetch(confirmed, url)
        with pytest.raises(BodyBroken):
            await answer.body()

    against(lambda _: raw, script)


@pytest.mark.parametrize(
    ("limit", "words"), [("PORTION_SECONDS_MAX", "nothing more"), ("BODY_SECONDS_MAX", "not complete")]
)
def test_a_body_that_does_not_end_is_an_error_and_its_connection_ends(
    monkeypatch: pytest.MonkeyPatch, limit: str, words: str
) -> None:
    async def main() -> None:
        async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nx")
            while limit == "BODY_SECONDS_MAX" and not writer.is_closing():  # a portion now and then, for ever
                writer.write(b"x")
                await asyncio.sleep(0.001)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
            over.set()

        over = asyncio.Event()
        server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, asyncio.timeout(120):
            answer = await outgoing.fetch(confirmed, url)
            monkeypatch.setattr(outgoing, limit, 0.05)
            with pytest.raises(FetchError, match=words):
                await answer.body()
            await over.wait()

    asyncio.run(main())


@pytest.mark.parametrize(("request_", "error"), BAD_REQUESTS)
def test_what_is_no_request_is_refused_before_anything_leaves(
    request_: dict[str, Any], error: type[Exception]
) -> None:
    url = request_.pop("url")
    with pytest.raises(error):
        asyncio.run(outgoing.fetch(confirmed, url, **request_))


def test_nobody_there_is_an_error() -> None:
    with pytest.raises(FetchError):
        asyncio.run(outgoing.fetch(confirmed, "http://127.0.0.1:1/"))


def test_method_headers_and_body_arrive() -> None:
    async def script(url: str) -> None:
        await outgoing.fetch(confirmed, url, method="put", headers={"X-Colour": "blue"}, body="é")

    _, (sent,) = against(lambda _: ANSWERS[0][0], script)
    assert sent.startswith(b"PUT / HTTP/1.1\r\n")
    assert b"\r\nx-colour: blue\r\n" in sent
    assert sent.endswith("\r\n\r\né".encode())


REDIRECTS = [
    # status, method → method and whether the body goes along
    (303, "PUT", b"GET", False),
    (302, "POST", b"GET", False),
    (301, "GET", b"GET", False),
    (307, "POST", b"POST", True),
    (308, "PUT", b"PUT", True),
]


@pytest.mark.parametrize(("status", "method", "then", "keeps"), REDIRECTS)
def test_redirects_are_followed(status: int, method: str, then: bytes, keeps: bool) -> None:
    def answer(sent: bytes) -> bytes:
        if b" /there " in sent:
            return ANSWERS[0][0]
        return b"HTTP/1.1 %d Moved\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n" % status

    async def script(url: str) -> None:
        answer = await outgoing.fetch(confirmed, url, method=method, body="" if method == "GET" else "x")
        assert answer.url == f"{url}/there"
        assert await answer.text() == "hi"

    _, (_, second) = against(answer, script)
    assert second.startswith(then + b" /there ")
    assert second.endswith(b"x") is keeps


def test_redirects_end_and_can_be_left_alone() -> None:
    async def script(url: str) -> None:
        with pytest.raises(FetchError, match="20 redirects"):
            await outgoing.fetch(confirmed, url)
        assert (await outgoing.fetch(confirmed, url, redirect="manual")).status == 302

    _, sent = against(lambda _: b"HTTP/1.1 302 F\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", script)
    assert len(sent) == 22


def test_credentials_do_not_follow_to_another_site() -> None:
    async def script(url: str) -> None:
        other = url.replace("127.0.0.1", "localhost")
        ports.append(other)
        await outgoing.fetch(
            confirmed, url, headers={"authorization": "secret", "host": "mine", "x-more": "1"}
        )

    ports: list[str] = []

    def answer(sent: bytes) -> bytes:
        if b" /there " in sent:
            return ANSWERS[0][0]
        return b"HTTP/1.1 302 F\r\nLocation: %s/there\r\nContent-Length: 0\r\n\r\n" % ports[0].encode()

    _, (first, second) = against(answer, script)
    assert b"authorization" in first
    assert b"host: mine" in first
    assert b"authorization" not in second
    assert b"mine" not in second
    assert b"x-more" in second


def test_a_large_body_waits_for_its_reader() -> None:
    size = 8 * limits.BODY_BUFFER_BYTES

    async def script(url: str) -> int:
        answer = await outgoing.fetch(confirmed, url)
        await asyncio.sleep(0.05)
        length = 0
        async for chunk in answer.stream():
            length += len(chunk)
        return length

    length, _ = against(
        lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size), script
    )
    assert length == size


HEAD_OF_MUCH = b"HTTP/1.1 %b\r\nLocation: /\r\nContent-Length: 100000000\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", FetchError),  # no head in time
        (HEAD_OF_MUCH % b"200 OK", None),  # a body that nobody reads
        (HEAD_OF_MUCH % b"302 Found", FetchError),  # and those of redirects
    ],
)
def test_a_connection_whose_answer_nobody_waits_for_ends(
    answer: bytes, error: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "HEAD_SECONDS_MAX", 0.5 if not answer else 60.0)
    left: list[asyncio.Future[None]] = []

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left.append(asyncio.get_running_loop().create_future())
        ended = left[-1]
        begun.set()
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await reader.read()
        ended.set_result(None)
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
        async with server, asyncio.timeout(120):
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            if error is None:
                assert (await outgoing.fetch(confirmed, url)).ok
            else:
                with pytest.raises(error):
                    await outgoing.fetch(confirmed, url)
            gc.collect()  # tracebacks hold frames, and these the answers
            await begun.wait()
            await asyncio.wait(left)

    begun = asyncio.Event()
    asyncio.run(main())
    assert len(left) == (1 if b"302" not in answer else 21)


def test_a_streamed_request_that_breaks_off_is_not_taken_for_complete() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"a"
        raise BodyBroken

    async def script(url: str) -> None:
        port = int(url.rpartition(":")[2])
        headers = [(b"host", b"a"), (b"transfer-encoding", b"chunked")]
        with pytest.raises(BodyBroken):
            await client.exchange(client.Tcp("127.0.0.1", port), "POST", b"/", headers, broken())

    def answer(sent: bytes) -> bytes:
        return b""

    against(answer, script)


class Relay(StatefulObject):
    async def fetch(self, request: Request) -> Response:
        answer = await self.ctx.fetch(request.query["url"])
        return Response(answer.stream(), answer.status)


def test_an_object_can_pass_an_answer_on(tmp_path: Path) -> None:
    async def script(caller: Client, host: Host) -> None:
        async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWERS[1][0])
            writer.close()

        async with await asyncio.start_server(serve_one, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            await caller.send(f"GET /objects/Relay/a/fetch/?url={url} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
            status, _, body = await caller.answer()
        assert (status, body) == (200, b"hi")

    serve(tmp_path, script, Relay)


class Writer(StatefulObject):
    async def fetch_after_put(self) -> Any:
        await self.ctx.storage.put("n", "written before")
        try:
            await self.ctx.fetch("http://127.0.0.1:1/")
        except FetchError:
            return "left"

    async def put_after_put(self) -> Any:
        await self.ctx.storage.put("n", "written before")
        await self.env.CACHE.put("k", "v")
        return "left"


@pytest.mark.parametrize("method", ["fetch_after_put", "put_after_put"])
def test_nothing_leaves_before_the_writes_are_durable(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    durable: list[bool] = []

    def leaves() -> None:
        durable.append(any(b"written before" in inode.durable for inode in logs.disk.inodes.values()))

    async def exchange(*arguments: Any, **named: Any) -> Any:
        leaves()
        raise client.ExchangeError("nobody is there")

    async def ask(question: bytes) -> bytes:
        leaves()
        return bindings.encode(bindings.Done())

    async def script(node: Node) -> None:
        assert await getattr(node.env.Writer["a"], method)() == "left"
        assert durable == [True]

    monkeypatch.setattr(outgoing, "exchange", exchange)
    run(logs, script, Writer, bindings=Bindings({"CACHE": "c" * 32}, ask))


REPLIES: list[tuple[Any, str]] = [
    (bindings.Refused(10030, "The key is empty.", permanent=True), "The key is empty"),
    (OSError("away"), "did not answer: away"),
]


@pytest.mark.parametrize(("reply", "words"), REPLIES)
def test_what_the_key_value_store_refuses_is_one_error(reply: Any, words: str) -> None:
    async def ask(question: bytes) -> bytes:
        if isinstance(reply, OSError):
            raise reply
        return bindings.encode(reply)

    values = bindings.KeyValues("c" * 32, ask, confirmed)
    with pytest.raises(KeyValueError, match=words) as caught:
        asyncio.run(values.get("k"))
    assert caught.value.retryable is isinstance(reply, OSError)


BAD_CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception]]] = [
    ("get", (1,), {}, TypeError),
    ("put", ("k", 1), {}, TypeError),
    ("put", ("k", "v"), {"expiry": 1}, TypeError),
    ("put", ("k", "v"), {"metadata": object()}, TypeError),
    ("put", ("k", "v"), {"metadata": float("nan")}, ValueError),
    ("delete", (None,), {}, TypeError),
]


@pytest.mark.parametrize(("method", "arguments", "named", "error"), BAD_CALLS)
def test_what_is_no_call_of_a_namespace_never_leaves(
    method: str, arguments: tuple[Any, ...], named: dict[str, Any], error: type[Exception]
) -> None:
    async def ask(question: bytes) -> bytes:
        raise AssertionError("asked")

    values = bindings.KeyValues("c" * 32, ask, confirmed)
    with pytest.raises(error):
        asyncio.run(getattr(values, method)(*arguments, **named))
