"""Lists page by page: clamped sizes, refused words, and nothing behind the end."""

import pytest

CLAMPED = {
    "per_page=0": 1,
    "per_page=-7": 1,
    "per_page=1001": 1000,
    f"per_page={'9' * 40}": 1000,
    "per_page=": 20,
}
REFUSED = (
    "page=0",
    "page=-1",
    "page=one",
    "per_page=1.5",
    "per_page=%20",
    "page=%D9%A1",
    "page=1_0",
    "page=+1",
)
LISTS = ("/zones", "/accounts", "/memberships")


@pytest.fixture
def zones(api):
    return [api.post("/zones", {"name": f"zone{number}.test"}).result["id"] for number in range(5)]


def test_pages_follow_one_another_and_together_are_everything(api, zones):
    pages = [api.get(f"/zones?per_page=2&page={page}").json for page in (1, 2, 3)]

    assert [one["id"] for page in pages for one in page["result"]] == zones
    assert [page["result_info"] for page in pages] == [
        {"page": page, "per_page": 2, "count": count, "total_count": 5, "total_pages": 3}
        for page, count in ((1, 2), (2, 2), (3, 1))
    ]


@pytest.mark.parametrize("page", ["4", "1000000", "9" * 18, "9" * 400])
def test_a_page_past_the_end_is_empty_and_no_error(api, zones, records, page):
    for path in ("/zones?per_page=2&", f"{records}?"):
        answer = api.get(f"{path}page={page}")

        assert (answer.status, answer.json["result"]) == (200, [])
        assert answer.json["result_info"]["count"] == 0


@pytest.mark.parametrize(("query", "size"), CLAMPED.items())
def test_page_sizes_are_clamped(api, query, size):
    assert api.get(f"/zones?{query}").json["result_info"]["per_page"] == size


def test_records_may_be_asked_for_by_the_million(api, records, www):
    answer = api.get(f"{records}?per_page=6000000").json

    assert answer["result_info"] == {
        "page": 1,
        "per_page": 5_000_000,
        "count": 1,
        "total_count": 1,
        "total_pages": 1,
    }


@pytest.mark.parametrize("query", REFUSED)
@pytest.mark.parametrize("path", LISTS)
def test_text_in_place_of_a_number_is_refused(api, path, query):
    answer = api.get(f"{path}?{query}")

    assert (answer.status, answer.codes) == (400, [1001])


def test_unknown_parameters_are_ignored_and_the_last_of_a_repeated_one_counts(api, zones):
    answer = api.get("/zones?nonsense=%25&per_page=1&per_page=3")

    assert len(answer.result) == 3


def test_a_query_has_a_limit_and_must_be_utf8(api):
    assert api.get("/zones?" + "&".join(f"a{number}=1" for number in range(101))).codes == [1001]
    assert api.get("/zones?name=%ff").codes == [1001]


@pytest.mark.parametrize("query", ["order=nonsense", "direction=up"])
def test_an_order_that_is_none_is_refused(api, zone_id, query):
    assert api.get(f"/zones?{query}").codes == [1001]
    assert api.get(f"/zones/{zone_id}/dns_records?{query}").codes == [1001]
