"""DNS over TLS and HTTPS through real sockets, with clients that check certificates."""

import asyncio
import shutil
import ssl
import struct
from ipaddress import ip_network

import dns.edns
import dns.message
import dns.rcode
import pytest
import uvloop

from edgestead.dns import arrivals, tcp
from edgestead.dns.counters import Slot
from edgestead.dns.https import freshness_seconds
from edgestead.dns.journal import Journal
from edgestead.model.budgets import table as budgets
from edgestead.model.budgets.ledger import Ledger
from edgestead.server.dns import shown
from tests.dns.private_lab import DEFAULT, OTHER, Folder, Lab, in_target, open_transfers
from tests.dns.serving import said

WWW = ("NOERROR", "AA", ["www.example.test. 300 a 192.0.2.80"], [], [])
PADDED = dns.edns.GenericOption(12, b"")
EVERYBODY = ip_network("0.0.0.0/0")


def query(name="www.example.test.", kind="A", number=0, **more):
    return dns.message.make_query(name, kind, id=number, **more).to_wire()


def read(reply):
    return said(dns.message.from_wire(reply))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("private") / "tls")


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(coroutine):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(asyncio.wait_for(coroutine, 300))

    return run


async def dig(*arguments):
    process = await asyncio.create_subprocess_exec(
        "dig", "+time=120", "+tries=1", *map(str, arguments), stdout=-1, stderr=-1
    )
    out, _ = await process.communicate()
    return out.decode()


# TLS


def test_pipelined_queries_are_answered_in_tls(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            client = await lab.client()
            replies = await client.ask(*(query(number=number) for number in range(50)))
            assert [int.from_bytes(reply[:2], "big") for reply in replies] == list(range(50))
            assert {str(read(reply)) for reply in replies} == {str(WWW)}
        assert lab.counts[Slot.QUERIES_TLS] == lab.counts[Slot.QUERIES] == 50
        assert lab.counts[Slot.CACHE_HITS] == 49
        assert lab.counts[Slot.HANDSHAKES_DONE] == 1
        assert lab.counts[Slot.TCP_OPEN] == 0

    run(main())


def test_replies_larger_than_what_may_be_unsent_arrive_whole(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            client = await lab.client()
            replies = await client.ask(*(query("big.example.test.", "TXT", number) for number in range(8)))
            assert all(len(reply) > 60_000 for reply in replies)

    run(main())


def test_clients_are_shown_the_certificate_of_the_name_or_the_default(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            for host in (DEFAULT, OTHER):
                client = await lab.client(host=host)
                shown = client.writer.get_extra_info("peercert")["subjectAltName"]
                assert shown == (("DNS", host),)
                assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "dot"
            nameless = folder.client()
            nameless.check_hostname = False
            client = await lab.client(host="127.0.0.1", context=nameless)
            assert read((await client.ask(query()))[0]) == WWW

    run(main())


def test_a_new_certificate_is_shown_without_a_restart(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            before = await lab.client()
            first = before.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            folder.put("default", DEFAULT)
            lab.certificates.look()
            after = await lab.client()
            assert after.writer.get_extra_info("ssl_object").getpeercert(binary_form=True) != first
            assert read((await before.ask(query()))[0]) == WWW

    run(main())


def test_without_any_certificate_the_handshake_is_refused(run, table, folder, tmp_path):
    async def main():
        async with Lab(folder, table) as lab:
            lab.certificates = type(lab.certificates)(tmp_path)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await lab.client()
        assert lab.counts[Slot.HANDSHAKES_FAILED] == 1

    run(main())


def test_replies_are_padded_for_who_asks_and_only_within_tls(run, table, folder):
    names = ("www.example.test.", "no.example.test.", "elsewhere.", "big.example.test.")
    padded = [query(name, "TXT", options=[PADDED]) for name in names]

    async def main():
        async with Lab(folder, table) as lab:
            private, open_ = await lab.client(), await lab.client(lab.tcp, host="")
            for reply, plain in zip(await private.ask(*padded), await open_.ask(*padded), strict=True):
                assert len(reply) % 468 == 0
                seen, same = dns.message.from_wire(reply), dns.message.from_wire(plain)
                assert 12 in [one.otype for one in seen.options]
                assert 12 not in [one.otype for one in same.options]
                assert said(seen) == said(same)
            (bare,) = await private.ask(query(names[0], "TXT", use_edns=0))
            assert len(bare) % 468

    run(main())


def test_padding_stands_beside_other_options(run, table, folder):
    wanted = query(options=[dns.edns.CookieOption(b"12345678", b""), PADDED])

    async def main():
        async with Lab(folder, table) as lab:
            (reply,) = await (await lab.client()).ask(wanted)
            assert len(reply) == 468
            assert sorted(one.otype for one in dns.message.from_wire(reply).options) == [10, 12]

    run(main())


def test_an_idle_connection_ends_with_a_word(run, table, folder):
    async def main():
        async with Lab(folder, table, idle_seconds=0.1) as lab:
            assert await (await lab.client()).ended()

    run(main())


def test_what_was_asked_is_answered_when_the_server_ends(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            client = await lab.client()
            await client.ask(query())
            client.writer.write(b"".join(struct.pack("!H", 34) + query(number=n) for n in range(9)))
            await client.read()
            lab.stop.set()
            assert [int.from_bytes((await client.read())[:2], "big") for _ in range(8)] == list(range(1, 9))

    run(main())


def test_handshakes_of_one_address_are_few(run, table, folder, monkeypatch):
    monkeypatch.setattr(arrivals, "HANDSHAKE_SECONDS_MAX", 300)  # none ends before the last one has come
    limit = budgets.DNS_ARRIVALS_ADDRESS.limit
    refused = asyncio.Event()

    async def main():
        async with Lab(folder, table, ledger=Ledger(tell=lambda *_: refused.set())) as lab:
            silent = [await lab.client(lab.tls, host="") for _ in range(limit)]
            late = await lab.client(lab.tls, host="")
            assert await late.ended()
            assert refused.is_set()
            assert lab.ledger.refused(budgets.DNS_ARRIVALS_ADDRESS) == 1
            for client in silent:
                client.writer.transport.abort()
            while lab.counts[Slot.HANDSHAKES_FAILED] < limit:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert read((await (await lab.client()).ask(query()))[0]) == WWW
        assert lab.counts[Slot.HANDSHAKES_FAILED] == limit

    run(main())


def test_a_handshake_that_does_not_go_on_ends(run, table, folder, monkeypatch):
    async def main():
        async with Lab(folder, table) as lab:
            with monkeypatch.context() as impatient:
                impatient.setattr(arrivals, "HANDSHAKE_SECONDS_MAX", 0.1)
                silent = [await lab.client(lab.tls, host="") for _ in range(3)]
                assert all([await client.ended() for client in silent])
            assert read((await (await lab.client()).ask(query()))[0]) == WWW
        assert lab.counts[Slot.HANDSHAKES_FAILED] == len(silent)

    run(main())


def test_connections_within_tls_count_with_all_others_of_an_address(run, table, folder):
    async def main():
        async with Lab(folder, table, address_connections_max=2) as lab:
            first = await lab.client(lab.tcp, host="")
            await first.ask(query())
            for _ in range(2):
                await (await lab.client()).ask(query())
            assert await first.ended()

    run(main())


@pytest.mark.skipif(not shutil.which("dig"), reason="BIND's dig is not installed")
def test_dig_asks_over_tls_and_checks_the_certificate(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            trust = [f"+tls-ca={folder.ca}", f"+tls-hostname={DEFAULT}"]
            place = ["@127.0.0.1", "-p", lab.tls]
            out = await dig(*place, "+tls", "+short", "+padding=128", *trust, "www.example.test")
            assert out == "192.0.2.80\n"
            assert "192.0.2.80" in await dig(*place, "+tls", "www.example.test", "alias.example.test")
            wrong = await dig(*place, "+tls", *trust[:1], "+tls-hostname=other.test", "www.example.test")
            assert "hostname mismatch" in wrong.lower()

    run(main())


# transfers


async def transfer(client):
    """The rcode of the first message."""
    (reply,) = await client.ask(query("example.test.", "AXFR"))
    return dns.rcode.to_text(reply[3] & 15)


def test_zones_are_transferred_within_tls_1_3_with_the_protocol_of_dns(run, table, folder):
    async def main():
        async with Lab(folder, table, transfers=open_transfers(Journal(), EVERYBODY)) as lab:
            assert await transfer(await lab.client()) == "NOERROR"
            assert await transfer(await lab.client(lab.tcp, host="")) == "NOERROR"
            old = folder.client("dot", newest=ssl.TLSVersion.TLSv1_2)
            assert await transfer(await lab.client(context=old)) == "REFUSED"
            assert await transfer(await lab.client(context=folder.client())) == "REFUSED"
        async with Lab(folder, table, transfers=open_transfers(Journal())) as lab:
            assert await transfer(await lab.client()) == "REFUSED"

    run(main())


def test_transfers_may_be_kept_to_tls(run, table, folder):
    async def main():
        policy = open_transfers(Journal(), EVERYBODY, tls_only=True)
        async with Lab(folder, table, transfers=policy) as lab:
            assert await transfer(await lab.client()) == "NOERROR"
            open_ = await lab.client(lab.tcp, host="")
            assert await transfer(open_) == "REFUSED"
            assert read((await open_.ask(query()))[0]) == WWW

    run(main())


@pytest.mark.skipif(not shutil.which("dig"), reason="BIND's dig is not installed")
def test_dig_transfers_a_zone_over_tls(run, table, folder):
    del table.view.zones[b"\7example\4test\0"].names[b"\6broken"]

    async def main():
        async with Lab(folder, table, transfers=open_transfers(Journal(), EVERYBODY)) as lab:
            out = await dig("@127.0.0.1", "-p", lab.tls, "+tls", "axfr", "example.test")
            assert out.count("\tTXT\t") == 300
            assert "XFR size: 305 records" in out

    run(main())


# HTTPS


def test_a_query_is_answered_by_get_and_by_post(run, table, folder):
    body = query(number=7)

    async def main():
        async with Lab(folder, table) as lab:
            status, headers, got = await lab.ask_https("GET", in_target(query()))
            assert (status, read(got), got[:2]) == (200, WWW, b"\0\0")
            assert headers["content-type"] == "application/dns-message"
            assert headers["cache-control"] == "max-age=300"
            kind = "Content-Type: application/dns-message"
            status, _, got = await lab.ask_https("POST", "/dns-query", kind, body=body)
            assert (status, read(got), got[:2]) == (200, WWW, b"\0\7")
            status, headers, got = await lab.ask_https("HEAD", in_target(query()))
            assert (status, got) == (200, b"")
        assert lab.counts[Slot.QUERIES_HTTPS] == lab.counts[Slot.QUERIES] == 3

    run(main())


def test_requests_share_a_connection_and_bodies_may_come_late(run, table, folder):
    body = query(number=7)

    async def main():
        async with Lab(folder, table) as lab:
            client = await lab.client(lab.https, context=folder.client("http/1.1"))
            for _ in range(3):
                assert (await lab.ask_https("GET", in_target(query()), client=client))[0] == 200
            head = "POST /dns-query HTTP/1.1\r\nHost: a.test\r\nContent-Type: application/dns-message\r\n"
            client.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
            await client.writer.drain()
            await asyncio.sleep(0.01)
            client.writer.write(body)
            assert read((await client.answer())[2]) == WWW

    run(main())


POSTED = {"content-type": "application/dns-message"}


def test_http_2_is_spoken_where_the_client_does(run, table, folder):
    large = query("big.example.test.", "TXT", 9)

    async def main():
        async with Lab(folder, table) as lab:
            got, posted, head, *many = await lab.ask_http2(
                ("GET", in_target(query()), {}, b""),
                ("POST", "/dns-query", POSTED, query(number=7)),
                ("HEAD", in_target(query()), {}, b""),
                *(("POST", "/dns-query", POSTED, large) for _ in range(20)),  # more than a window
            )
            assert (got[0], read(got[2]), got[1]["cache-control"]) == (200, WWW, "max-age=300")
            assert got[1]["content-type"] == "application/dns-message"
            assert (posted[0], read(posted[2]), posted[2][:2]) == (200, WWW, b"\0\7")
            assert (head[0], head[2]) == (200, b"")
            assert {(one[0], len(one[2])) for one in many} == {(200, int(many[0][1]["content-length"]))}
            assert len(many[0][2]) > 60_000
        assert lab.counts[Slot.QUERIES_HTTPS] == lab.counts[Slot.QUERIES] == 23

    run(main())


def test_what_is_no_query_is_refused_in_http_2_as_in_http_1(table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            asked = []
            for method, target, lines, body, _ in NO_REQUESTS:
                headers = dict(line.lower().split(": ") for line in lines)
                asked.append((method, target, headers, body))
            answers = await lab.ask_http2(*asked)
            assert [answer[0] for answer in answers] == [expected for *_, expected in NO_REQUESTS]
            assert all(answer[2].endswith(b".\n") for answer in answers)

    with asyncio.Runner() as runner:
        runner.run(asyncio.wait_for(main(), 300))


KIND = "Content-Type: application/dns-message"
NO_REQUESTS = [
    ("GET", "/", (), b"", 404),
    ("GET", "/dns-query", (), b"", 400),
    ("GET", "/dns-query?dns=", (), b"", 400),
    ("GET", "/dns-query?dns=AAAA", (), b"", 400),
    ("GET", "/dns-query?dns=!!!!", (), b"", 400),
    ("GET", in_target(query()) + "=", (), b"", 400),
    ("GET", in_target(query()) + "&dns=AAAA", (), b"", 400),
    ("GET", in_target(bytes(5_000)), (), b"", 413),
    ("GET", in_target(b"\0\0\x80" + query()[3:]), (), b"", 400),
    ("POST", "/dns-query", (), query(), 415),
    ("POST", "/dns-query", ("Content-Type: application/json",), query(), 415),
    ("POST", "/dns-query", (KIND,), b"short", 400),
    ("POST", "/dns-query", (KIND,), bytes(5_000), 413),
    ("PUT", "/dns-query", (KIND,), query(), 405),
]


@pytest.mark.parametrize(("method", "target", "headers", "body", "expected"), NO_REQUESTS)
def test_what_is_no_query_is_refused_in_http(table, folder, method, target, headers, body, expected):
    async def main():
        async with Lab(folder, table) as lab:
            status, got, said = await lab.ask_https(method, target, *headers, body=body)
            assert (status, got["content-type"]) == (expected, "text/plain; charset=utf-8")
            assert said.endswith(b".\n")

    with asyncio.Runner() as runner:
        runner.run(asyncio.wait_for(main(), 300))


def test_what_dns_refuses_is_an_answer_that_nobody_keeps(run, table, folder):
    async def main():
        async with Lab(folder, table, transfers=open_transfers(Journal(), EVERYBODY)) as lab:
            for name, kind in (("elsewhere.", "A"), ("example.test.", "AXFR")):
                status, headers, got = await lab.ask_https("GET", in_target(query(name, kind)))
                assert (status, got[3] & 15, headers["cache-control"]) == (200, 5, "max-age=0")
            broken = in_target(query()[:-1])
            status, headers, got = await lab.ask_https("GET", broken)
            assert (status, got[3] & 15, headers["cache-control"]) == (200, 1, "max-age=0")

    run(main())


def test_a_denial_is_kept_as_long_as_its_soa_says(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            for name in ("no.example.test.", "www.example.test."):
                _, headers, _ = await lab.ask_https("GET", in_target(query(name, "AAAA")))
                assert headers["cache-control"] == "max-age=600"

    run(main())


def test_an_answer_is_kept_as_long_as_its_first_record_to_end():
    text = "id 1\nflags QR AA\n;QUESTION\na. IN A\n;ANSWER\na. 300 IN CNAME b.\nb. 20 IN A 192.0.2.1\n"
    assert freshness_seconds(dns.message.from_text(text).to_wire()[2:]) == 20


def test_padding_is_answered_within_https(run, table, folder):
    async def main():
        async with Lab(folder, table) as lab:
            _, _, got = await lab.ask_https("GET", in_target(query(options=[PADDED])))
            assert len(got) == 468

    run(main())


@pytest.mark.skipif(not shutil.which("dig"), reason="BIND's dig is not installed")
@pytest.mark.parametrize("how", ["+https", "+https-get"])
def test_dig_asks_over_https_and_checks_the_certificate(run, table, folder, how):
    async def main():
        async with Lab(folder, table) as lab:
            trust = [f"+tls-ca={folder.ca}", f"+tls-hostname={DEFAULT}"]
            place = ["@127.0.0.1", "-p", lab.https]
            assert await dig(*place, how, "+short", *trust, "www.example.test") == "192.0.2.80\n"
            assert "status: NXDOMAIN" in await dig(*place, how, *trust, "no.example.test")

    run(main())


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl_asks(run, table, folder, version):
    async def main():
        async with Lab(folder, table) as lab:
            at = f"https://{OTHER}:{lab.https}{in_target(query())}"
            process = await asyncio.create_subprocess_exec(
                *("curl", "-sS", version, "--cacert", folder.ca),
                *("--resolve", f"{OTHER}:{lab.https}:127.0.0.1", at),
                stdout=-1,
            )
            out, _ = await process.communicate()
            assert read(out) == WWW

    run(main())


def test_a_look_at_the_certificates_that_fails_is_not_the_last_one(run, folder, monkeypatch):
    monkeypatch.setattr(shown, "LOOK_SECONDS", 0.001)
    looks = []

    async def main():
        following = shown.Shown(folder.path, [], lambda: None)
        again = asyncio.Event()

        def look():
            looks.append(1)
            if len(looks) == 1:
                raise RuntimeError("unforeseen")
            again.set()

        monkeypatch.setattr(following._certificates, "look", look)
        task = asyncio.create_task(following.follow())
        await again.wait()
        task.cancel()

    run(main())


def test_a_look_for_idle_connections_that_fails_is_not_the_last_one(run, table, folder, monkeypatch):
    monkeypatch.setattr(tcp, "SWEEP_SECONDS", 0.001)
    good, looks = tcp._House._sweep, []

    async def main():
        again = asyncio.Event()

        def sweep(house):
            looks.append(1)
            if len(looks) == 1:
                raise RuntimeError("unforeseen")
            good(house)
            again.set()

        monkeypatch.setattr(tcp._House, "_sweep", sweep)
        async with Lab(folder, table):
            await again.wait()

    run(main())
