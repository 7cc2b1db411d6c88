"""Paths are matched as they came, and what is not there says so in one way."""

import pytest

from edgestead.model.refusals import MethodNotAllowed
from edgestead.model.refusals.request import NoRoute
from edgestead.rest.routing import Router, route

A_ID = "0" * 32
UNKNOWN = (
    "/",
    "/zone",
    "/zones/",  # is known, with a slash: see below
    "/zones/not-an-id",
    f"/zones/{'A' * 32}",
    f"/zones/{'0' * 31}",
    f"/zones/{A_ID}/",  # is known, with a slash
    f"/zones/{A_ID}/dns_records/xyz",
    f"/zones//{A_ID}",
    f"//zones/{A_ID}",
    f"/zones/{A_ID}%2Fdns_records",
    "/accounts/%30",
    "/user/nothing",
)
KNOWN_WITH_A_SLASH = ("/zones/", f"/zones/{A_ID}/")
WRONG_METHODS = {
    ("PUT", "/zones"): "GET, HEAD, POST",
    ("DELETE", "/accounts"): "GET, HEAD, POST",
    ("PUT", f"/zones/{A_ID}"): "DELETE, GET, HEAD, PATCH",
    ("POST", f"/zones/{A_ID}/dns_records/{A_ID}"): "DELETE, GET, HEAD, PATCH, PUT",
    ("OPTIONS", "/user"): "GET, HEAD, PATCH",
}


@pytest.mark.parametrize("path", [path for path in UNKNOWN if path not in KNOWN_WITH_A_SLASH])
def test_an_unknown_path_or_a_malformed_id_is_404_with_two_errors(api, path):
    answer = api.get(path)

    assert answer.status == 404
    assert answer.codes == [7003, 7000]
    assert f"/client/v4{path}" in answer.json["errors"][0]["message"]


def test_who_asks_for_an_unknown_path_needs_no_credentials_to_hear_it(api):
    assert api.get("/no/such/route", auth={}).status == 404


@pytest.mark.parametrize(("call", "allowed"), WRONG_METHODS.items(), ids=str)
def test_a_method_that_a_path_does_not_take_is_405_and_names_those_it_takes(api, call, allowed):
    answer = api.call(*call)

    assert (answer.status, answer.codes, answer.headers["allow"]) == (405, [7001], allowed)


def test_one_slash_at_the_end_is_ignored_and_a_second_is_not(api, records):
    assert api.get("/zones/").status == 200
    assert api.get(f"{records}/").status == 200
    assert api.get("/zones//").status == 404


def test_an_escape_that_is_no_utf8_is_refused(api):
    assert api.get("/accounts/%ff").codes == [7002]


def test_head_is_get(api):
    assert api.call("HEAD", "/zones").status == 200


def test_a_segment_is_decoded_after_it_was_cut_out():
    router = Router([_row("GET", "/things/{name}/parts")])

    found, parameters = router.find("GET", "/things/a%2Fb%20c/parts")

    assert (found.path, parameters) == ("/things/{name}/parts", ["a/b c"])
    with pytest.raises(NoRoute):
        router.find("GET", "/things/a/b/parts")


def test_a_literal_segment_comes_before_a_parameter():
    router = Router([_row("GET", "/tokens/{token_id}"), _row("GET", "/tokens/verify")])

    assert router.find("GET", "/tokens/verify")[0].path == "/tokens/verify"
    assert router.find("GET", f"/tokens/{A_ID}")[1] == [A_ID]


def test_two_routes_cannot_claim_one_path():
    with pytest.raises(ValueError, match="two routes for GET /a"):
        Router([_row("GET", "/a"), _row("GET", "/a")])


def test_an_inner_node_is_no_route():
    router = Router([_row("POST", "/a/b")])

    with pytest.raises(NoRoute):
        router.find("GET", "/a")
    with pytest.raises(MethodNotAllowed):
        router.find("GET", "/a/b")


def _row(method, path):
    """A route of this test alone: it leaves the program's table as it was."""
    from edgestead.rest import routing

    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    handler = eval(f"lambda {', '.join(names)}: None")
    route(method, path, base="")(handler)
    return routing.ROUTES.pop()
