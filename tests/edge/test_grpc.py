"""gRPC through the edge, with an unmodified client and server of grpcio: h2c and TLS to the server."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import grpc
import pytest

from edgestead.cli.server.authority import Authority
from tests.edge.origin import loopback
from tests.edge.tls import put, tls_site

SECONDS_MAX = 180
PIECE = bytes(range(256)) * 1_024


def echo(request, context):
    context.send_initial_metadata((("x-first", "1"),))
    context.set_trailing_metadata((("x-last", "2"), ("x-own-bin", b"\0\xff")))
    return request


def refuse(request, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "nicht heute: ü")


def count(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def total(requests, context):
    return b"%d" % sum(map(len, requests))


def talk(requests, context):
    for request in requests:
        yield b"you said " + request


METHODS = {
    "/test/Echo": grpc.unary_unary_rpc_method_handler(echo),
    "/test/Refuse": grpc.unary_unary_rpc_method_handler(refuse),
    "/test/Count": grpc.unary_stream_rpc_method_handler(count),
    "/test/Total": grpc.stream_unary_rpc_method_handler(total),
    "/test/Talk": grpc.stream_stream_rpc_method_handler(talk),
}


class Service(grpc.GenericRpcHandler):  # type: ignore[misc]
    def service(self, call):
        return METHODS.get(call.method)


@pytest.fixture(scope="module")
def authority():
    return Authority.new(datetime.now(UTC))


@pytest.fixture(scope="module")
def site(tmp_path_factory, authority):
    tls_dir = tmp_path_factory.mktemp("tls")
    with tls_site(tmp_path_factory.mktemp("site"), authority, tls_dir) as made:
        made.set("http2", "on")
        yield made


@pytest.fixture(scope="module", params=["h2c", "tls"])
def stub(request, site, authority, tmp_path_factory):
    """A channel to the edge, and behind that a server which is asked without TLS, or with it."""
    site.set("origin_h2c", "on")
    site.set("ssl", "strict" if request.param == "tls" else "off")
    server = grpc.server(ThreadPoolExecutor(8), (Service(),))
    address = loopback(40 if request.param == "tls" else 41)
    place = f"{address}:{site.first.port}"
    host = site.name(address)
    if request.param == "tls":
        folder = tmp_path_factory.mktemp("origin")
        put(authority, folder, "origin", host)
        pem = (folder / "origin.pem").read_bytes()
        server.add_secure_port(place, grpc.ssl_server_credentials([(pem, pem)]))
    else:
        server.add_insecure_port(place)
    server.start()
    https = site.server.ready["https"]
    options = (
        ("grpc.ssl_target_name_override", host),
        ("grpc.default_authority", host),
        ("grpc.use_local_subchannel_pool", 1),
    )
    trusted = grpc.ssl_channel_credentials(authority.certificate_pem)
    with grpc.secure_channel(https, trusted, options) as channel:
        yield channel
    server.stop(None).wait(SECONDS_MAX)


def test_a_call_and_what_stands_around_it(stub):
    answer, call = stub.unary_unary("/test/Echo").with_call(PIECE, timeout=SECONDS_MAX)
    assert answer == PIECE
    assert dict(call.initial_metadata())["x-first"] == "1"
    assert dict(call.trailing_metadata()) == {"x-last": "2", "x-own-bin": b"\0\xff"}
    assert call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize(
    ("method", "code", "words"),
    [
        ("Refuse", grpc.StatusCode.FAILED_PRECONDITION, "nicht heute: ü"),
        ("Nothing", grpc.StatusCode.UNIMPLEMENTED, "Method not found!"),
    ],
)
def test_a_status_and_its_words_arrive(stub, method, code, words):
    with pytest.raises(grpc.RpcError) as caught:
        stub.unary_unary(f"/test/{method}")(b"", timeout=SECONDS_MAX)
    assert (caught.value.code(), caught.value.details()) == (code, words)


def test_streams_of_either_side(stub):
    assert list(stub.unary_stream("/test/Count")(b"300", timeout=SECONDS_MAX)) == [
        b"%d" % number for number in range(300)
    ]
    pieces = (PIECE for _ in range(30))
    assert stub.stream_unary("/test/Total")(pieces, timeout=SECONDS_MAX) == b"%d" % (30 * len(PIECE))


def test_a_conversation_in_which_each_waits_for_the_other(stub):
    turns = threading.Semaphore(1)

    def said():
        for number in range(20):
            turns.acquire(timeout=SECONDS_MAX)
            yield b"%d" % number

    heard = []
    for answer in stub.stream_stream("/test/Talk")(said(), timeout=SECONDS_MAX):
        heard.append(answer)
        turns.release()
    assert heard == [b"you said %d" % number for number in range(20)]


def test_many_calls_at_a_time(stub):
    call = stub.unary_unary("/test/Echo")
    asked = [call.future(b"%d" % number, timeout=SECONDS_MAX) for number in range(500)]
    assert [one.result() for one in asked] == [b"%d" % number for number in range(500)]


def test_a_call_that_its_client_gives_up_ends_and_others_go_on(stub):
    waiting = threading.Event()

    def never():
        waiting.set()
        threading.Event().wait(2)
        yield b""

    call = stub.stream_stream("/test/Talk")(never())
    assert waiting.wait(SECONDS_MAX)
    call.cancel()
    assert stub.unary_unary("/test/Echo")(b"on", timeout=SECONDS_MAX) == b"on"
