"""The overview: rates, latencies, charts, and the stream that keeps a page current."""

import asyncio
import http.client
import re
import time

import pytest

from edgestead.model.budgets.ledger import Ledger
from edgestead.model.budgets.table import DASHBOARD_STREAMS, DASHBOARD_STREAMS_SESSION
from edgestead.model.refusals import Unavailable
from edgestead.model.refusals.request import OverBudget, ServerFull
from edgestead.web.charts import POINTS_MAX, charts, number
from edgestead.web.live import Live
from edgestead.web.samples import CHARTS, SAMPLE_SECONDS, Foreign, Samples

DNS, DNS_TIME, EDGE, EDGE_TIME = CHARTS[0], CHARTS[1], CHARTS[2], CHARTS[4]


class Counters:
    """Metrics that a test sets, and a clock that goes on with each sample."""

    def __init__(self):
        self.lines, self.now_s = [], 0.0
        self.samples = Samples(lambda: "\n".join(self.lines), lambda: self.now_s)

    def take(self, *lines, after_s=SAMPLE_SECONDS):
        self.lines, self.now_s = lines, self.now_s + after_s
        self.samples.take()

    def values(self, row, span="hour"):
        return [[value for _, value in line.points] for line in self.samples.lines(row, span)]


@pytest.fixture
def counters():
    return Counters()


def dns(count, process="dns-0"):
    return f'edge_dns_queries_total{{process="{process}"}} {count}'


def answered(count):
    return [
        f'edge_dns_answer_seconds_bucket{{process="dns-0",le="{le}"}} {count}' for le in ("0.001", "+Inf")
    ]


def test_rates_are_of_all_processes_and_a_counter_may_begin_again(counters):
    for counts in ((0, 5), (100, 5), (300, 15), (10, 25)):
        counters.take(dns(counts[0]), dns(counts[1], "dns-tcp-0"), "other 1", "# HELP x")

    assert counters.values(DNS) == [[10.0, 21.0, 0.0]]


def test_statuses_have_a_line_each(counters):
    for count in (0, 10):
        counters.take(
            *(
                f'edge_http_requests_total{{process="edge-{n}",status="{n}xx"}} {n * count}'
                for n in range(1, 6)
            )
        )

    assert counters.values(EDGE) == [[2.0], [3.0], [4.0], [5.0]]


@pytest.mark.parametrize(
    ("chart", "name"),
    [(EDGE_TIME, "edge_http_request_seconds"), (DNS_TIME, "edge_dns_answer_seconds")],
)
def test_a_latency_is_the_bound_that_its_share_is_within(counters, chart, name):
    def buckets(*counts):
        bounds = ("5e-05", "0.01", "+Inf")
        lines = zip(bounds, counts, strict=True)
        return [f'{name}_bucket{{process="one-0",le="{le}"}} {n}' for le, n in lines]

    for counts in ((0, 0, 0), (60, 100, 100), (60, 100, 100), (60, 100, 200)):
        counters.take(*buckets(*counts))

    assert counters.values(chart) == [[0.05, 10.0], [10.0, 10.0]]  # nothing without requests


def test_a_day_is_kept_in_longer_steps_and_both_rings_have_an_end(counters):
    for second in range(0, 90_000, SAMPLE_SECONDS):
        counters.take(dns(second))

    (hour,), (day,) = counters.values(DNS), counters.values(DNS, "day")
    assert (len(hour), len(day)) == (360, 288)
    assert set(hour) == set(day) == {1.0}


def test_samples_go_on_in_another_process_as_old_as_they_are(counters):
    for second in range(0, 1_000, SAMPLE_SECONDS):
        counters.take(dns(second), *answered(second))
    kept = counters.samples.encoded(now_us=50_000_000)

    later = Counters()
    later.samples.go_on(kept, now_us=110_000_000)
    for count in (0, 20):
        later.take(dns(count), *answered(0))

    (points,) = (line.points for line in later.samples.lines(DNS, "hour"))
    assert [round(ago_s) for ago_s, _ in points] == [*range(1_060, 70, -10), 0]
    assert [value for _, value in points] == [1.0] * 99 + [2.0]
    assert len(later.samples.lines(DNS_TIME, "hour")[0].points) == 99, "no latency of no requests"
    assert len(later.samples.lines(DNS, "day")[0].points) == 3


def test_of_samples_only_those_of_the_last_hour_and_day_are_kept(counters):
    for second in range(0, 90_000, SAMPLE_SECONDS):
        counters.take(dns(second))
    kept, later = counters.samples.encoded(now_us=0), Counters()
    later.samples.go_on(kept, now_us=40_000 * 1_000_000)

    assert [len(later.samples.lines(DNS, span)[0].points) for span in ("hour", "day")] == [0, 154]


@pytest.mark.parametrize(
    ("torn", "words"),
    [
        (lambda octets: b"", "truncated"),
        (lambda octets: octets[:-9], "truncated"),
        (lambda octets: b"\xff\x00" + octets, "malformed"),
        (lambda octets: octets.replace(b'"form":1', b'"form":2'), "another version"),
        (lambda octets: octets.replace(b"DNS queries: ", b""), "another version"),
        (lambda octets: octets.replace(b'"at_us":7', b'"at_us":9'), "from the future"),
        (lambda octets: octets.replace(b"[10.0,[", b"[90.0,["), "not in order"),
        (lambda octets: octets.replace(b"[0.0,[", b"[-1.0,["), "not in order"),
        (lambda octets: octets.replace(b"[0.0,[", b"[0.0,[1.0,"), "not one value"),
        (lambda octets: octets.replace(b"[0.0,[1.0", b"[0.0,[-1.0"), "not one value"),
        (lambda octets: octets.replace(b"[0.0,[1.0", b'[0.0,["<script>"'), "Expected"),
    ],
)
def test_samples_that_are_torn_or_foreign_are_refused_in_words(counters, torn, words):
    for second in range(0, 50, SAMPLE_SECONDS):
        counters.take(dns(second))
    octets, later = torn(counters.samples.encoded(now_us=7)), Counters()

    with pytest.raises(Foreign, match=words):
        later.samples.go_on(octets, now_us=8)

    assert later.values(DNS) == [[]]


def test_a_chart_is_short_and_keeps_what_stands_out(counters):
    total = 0
    for second in range(0, 3_600, SAMPLE_SECONDS):
        total += 1_000 if second == 1_800 else 10
        counters.take(dns(total))

    chart = charts(counters.samples, "hour")[0]

    assert len(re.findall("[ML]", chart.lines[0].path)) <= POINTS_MAX
    assert (chart.highest, chart.lines[0].now) == ("100", "1")
    assert chart.summary == "DNS queries, a second: queries 1, at most 100"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.251, "0.25"), (9.96, "10"), (12.4, "12"), (1234.5, "1,234")]
)
def test_numbers_have_the_digits_that_count(value, text):
    assert number(value) == text


def test_a_stream_sends_once_a_sample_and_ends_with_its_session(counters):
    made, signed_in = [], [True]

    async def make():
        made.append(1)
        return "first\nsecond"

    async def script():
        live = Live(counters.samples, Ledger())
        streams = [live.response("one", "hour", make, lambda: signed_in[0]).body for _ in range(2)]
        assert {await anext(one) for one in streams} == {b"retry: 10000\n\n"}
        coming = [asyncio.ensure_future(anext(one)) for one in streams]
        await asyncio.sleep(0)
        counters.take(dns(1))
        assert await asyncio.gather(*coming) == [b"data: first\ndata: second\n\n"] * 2
        assert len(made) == 1
        signed_in[0] = False
        coming = [asyncio.ensure_future(anext(one, "over")) for one in streams]
        await asyncio.sleep(0)
        counters.take(dns(2))
        assert await asyncio.gather(*coming) == ["over"] * 2

    asyncio.run(script())


def test_streams_are_bounded_and_end_with_the_server(counters):
    async def script():
        ledger, each = Ledger(), DASHBOARD_STREAMS_SESSION.limit
        live = Live(counters.samples, ledger)

        def ask(whose):
            return live.response(whose, "hour", None, lambda: True)

        opened = [ask(f"session {number // each}") for number in range(DASHBOARD_STREAMS.limit)]
        with pytest.raises(OverBudget, match=r"more than 16 pages .* of one credentials"):
            ask("session 0")
        with pytest.raises(ServerFull, match="more than 64 pages"):
            ask("another")
        assert [ledger.refused(one) for one in (DASHBOARD_STREAMS_SESSION, DASHBOARD_STREAMS)] == [1, 1]
        opened[0].done(None)
        opened[0] = ask("another")
        assert live.count == DASHBOARD_STREAMS.limit
        await anext(opened[1].body)
        coming = asyncio.ensure_future(anext(opened[1].body, "over"))
        await asyncio.sleep(0)
        live.end()
        assert await coming == "over"
        opened[2].done(None)
        with pytest.raises(Unavailable):
            ask("session 0")

    asyncio.run(script())


def test_a_browser_gets_the_overview_again_until_it_signs_out(web_server, visitor):
    is_between = False
    while not is_between:  # two samples; one may be taken before this, or this may take too long
        page = visitor.get("/ui")
        connection = http.client.HTTPConnection(visitor.host, timeout=180)
        connection.request("GET", "/ui/live?span=hour", headers={"Cookie": visitor.cookie})
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.readline() == b"retry: 10000\n"
        assert answer.readline() == b"\n"
        assert b"Health" in b"".join(iter(answer.readline, b"\n"))
        sampled = time.monotonic()
        visitor.post("/ui/sign-out", page)
        if is_between := time.monotonic() - sampled < SAMPLE_SECONDS / 2:
            assert b"Health" not in answer.read()
        else:
            visitor.sign_in(web_server.ready["api_token"])
        connection.close()


def test_the_overview_folds_what_is_well_and_has_a_day(visitor):
    page = visitor.get("/ui?span=day")

    assert re.search(r"ok \d+ checks", page.words)
    assert "The last day" in page.words
    assert "Time until the edge answers ms, at most" in page.words
    assert len(page.text) < 60_000


def test_a_latency_of_no_requests_is_none(counters):
    counters.take(*answered(0))
    counters.take(*answered(0))
    nothing = charts(counters.samples, "hour")[1].lines[0]
    counters.take(*answered(5))
    some = charts(counters.samples, "hour")[1].lines[0]
    counters.take(*answered(5))
    no_more = charts(counters.samples, "hour")[1].lines[0]

    assert (nothing.now, nothing.highest) == ("none", "none")
    assert (some.now, some.highest) == ("1", "1")
    assert (no_more.now, no_more.highest) == ("none", "1")


def test_each_process_is_a_row_with_what_happened_to_it(counters):
    counters.take(
        'edge_process_starts_total{process="dns-0"} 3',
        'edge_process_silences_total{process="dns-0"} 1',
        'edge_process_starts_total{process="control"} 1',
        'edge_process_stops_total{process="control"} 2',
        dns(5),
    )

    assert counters.samples.processes == [("control", 1, 0, 2), ("dns-0", 3, 1, 0)]


def test_the_overview_names_the_processes(visitor):
    words = visitor.get("/ui").words
    assert re.search(r"[0-9]+ processes: none was started again", words)
    assert re.search(r"control 1 0 0 .*dns-0 1 0 0", words)
