"""Counter pages: what is counted on one side is read on the other."""

import pytest

from edgestead.model.counters import (
    METRICS,
    NAME_BYTES_MAX,
    PAGE_BYTES,
    ROW_CELLS,
    ROWS_MAX,
    Page,
    private_page,
    render,
    slot,
)


def test_cells_of_two_metrics_never_overlap():
    taken = [slot(m.name) + offset for m in METRICS for offset in range(m.cells)]

    assert len(taken) == len(set(taken))
    assert max(taken) < PAGE_BYTES // 8


def test_two_pages_over_one_memory_show_the_same_counts():
    memory = bytearray(PAGE_BYTES)
    writer, reader = Page(memory), Page(memory)

    writer.add(slot("edge_dns_queries_total"), 3)
    writer.add(slot("edge_dns_queries_total"))

    assert reader.cells[slot("edge_dns_queries_total")] == 4


def test_a_process_counts_on_after_its_restart():
    memory = bytearray(PAGE_BYTES)
    Page(memory).add(slot("edge_process_starts_total"))

    Page(memory).add(slot("edge_process_starts_total"))

    assert 'edge_process_starts_total{process="control"} 2' in render({"control": Page(memory)})


def test_a_label_has_one_sample_for_each_value():
    page = private_page()
    page.add(slot("edge_dns_answers_total", "nxdomain"), 7)

    text = render({"dns-0": page})

    assert 'edge_dns_answers_total{process="dns-0",rcode="nxdomain"} 7' in text
    assert 'edge_dns_answers_total{process="dns-0",rcode="noerror"} 0' in text


def test_values_that_a_process_names_are_shown_by_name_and_in_seconds():
    page, first = private_page(), slot("edge_objects_cpu_seconds_total")
    page.name(first, "Booking")
    page.add(first, 1_500_000)
    page.name(first + ROW_CELLS, "\u00e4" * NAME_BYTES_MAX)
    page.name(first + (ROWS_MAX - 1) * ROW_CELLS, "(others)")

    shown = [line for line in render({"objects-0": page}).splitlines() if line.startswith("edge_objects_cpu")]

    cut = "\u00e4" * (NAME_BYTES_MAX // 2)
    assert shown == [
        'edge_objects_cpu_seconds_total{process="objects-0",class="Booking"} 1.500000',
        f'edge_objects_cpu_seconds_total{{process="objects-0",class="{cut}"}} 0.000000',
        'edge_objects_cpu_seconds_total{process="objects-0",class="(others)"} 0.000000',
    ]


def test_a_process_shows_only_its_roles_metrics():
    text = render({"dns-tcp": private_page(), "control": private_page()})

    assert 'edge_dns_tcp_connections_open{process="dns-tcp"} 0' in text
    assert 'edge_dns_tcp_connections_open{process="control"}' not in text
    assert 'edge_api_requests_total{process="dns-tcp"' not in text


DURATIONS_US = [
    # duration, the first bucket that holds it
    (0, "0.0001"),
    (100, "0.0001"),
    (101, "0.00025"),
    (1_000_000, "1"),
    (1_000_001, "+Inf"),
    (-5, "0.0001"),  # the clock was set back
]


@pytest.mark.parametrize(("duration_us", "bucket"), DURATIONS_US)
def test_a_duration_falls_into_the_first_bucket_that_holds_it(duration_us, bucket):
    page = private_page()

    page.observe(slot("edge_feed_wait_seconds"), duration_us)

    samples = [
        line for line in render({"control": page}).splitlines() if "edge_feed_wait_seconds_bucket" in line
    ]
    first = next(line for line in samples if line.endswith(" 1"))
    assert f'le="{bucket}"' in first
    assert samples[-1].endswith(" 1")


def test_a_histogram_tells_sum_and_count():
    page = private_page()
    page.observe(slot("edge_feed_wait_seconds"), 1500)
    page.observe(slot("edge_feed_wait_seconds"), 500)

    text = render({"control": page})

    assert 'edge_feed_wait_seconds_sum{process="control"} 0.002000' in text
    assert 'edge_feed_wait_seconds_count{process="control"} 2' in text


def test_every_family_has_help_and_type_before_its_samples():
    pages = {
        name: private_page() for name in ("control", "dns-0", "dns-tcp", "objects-0", "edge-0", "alerts")
    }
    pages["objects-0"].name(slot("edge_objects_cpu_seconds_total"), "Booking")
    lines = render(pages).splitlines()

    for metric in METRICS:
        at = lines.index(f"# TYPE {metric.name} {metric.kind}")
        assert lines[at - 1] == f"# HELP {metric.name} {metric.help}"
        assert lines[at + 1].startswith(metric.name)


@pytest.mark.parametrize("asked", [("edge_nothing_total",), ("edge_dns_answers_total", "yes")])
def test_a_metric_that_is_not_in_the_table_cannot_be_counted(asked):
    with pytest.raises(KeyError):
        slot(*asked)


def test_a_page_refuses_a_count_beyond_its_cell():
    page = private_page()
    page.set(0, 2**64 - 1)

    with pytest.raises(ValueError, match="invalid value"):
        page.add(0)
