"""A path of a product that is not here says so, beside the refusal that clients know."""

from pathlib import Path

import jsonschema_rs
import pytest

from edgestead.model.absent_products import BASE, PRODUCTS, product_of
from edgestead.rest import openapi
from edgestead.rest.routing import BASE_PATH, ROUTES

ID = "0" * 32
DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
NAMED = {
    f"/accounts/{ID}/cfd_tunnel": "Tunnel",
    f"/accounts/{ID}/cfd_tunnel/{ID}/configurations": "Tunnel",
    f"/accounts/{ID}/access/apps": "Access",
    f"/zones/{ID}/access/apps": "Access",
    f"/zones/{ID}/load_balancers": "Load Balancing",
    "/user/load_balancers/pools": "Load Balancing",
    f"/zones/{ID}/client_certificates": "advanced, client and keyless certificates",
    f"/zones/{ID}/ssl/verification": "advanced, client and keyless certificates",
    f"/accounts/{ID}/pages/projects": "Pages",
    f"/accounts/{ID}/workers/scripts/x": "Workers",
    f"/accounts/{ID}/r2/buckets": "R2",
    f"/accounts/{ID}/d1/database": "D1",
    f"/accounts/{ID}/queues": "Queues",
    f"/accounts/{ID}/images/v1": "Images",
    f"/accounts/{ID}/stream": "Stream",
    f"/zones/{ID}/waiting_rooms": "Waiting Room",
    f"/zones/{ID}/spectrum/apps": "Spectrum",
    f"/zones/{ID}/email/routing": "Email Routing and Email Security",
    f"/zones/{ID}/logpush/jobs": "Logpush and log retrieval",
    f"/zones/{ID}/healthchecks": "Healthchecks",
    f"/zones/{ID}/page_shield": "Page Shield",
    f"/zones/{ID}/api_gateway/operations": "API Gateway",
    "/graphql": "analytics",
}
UNNAMED = (
    "",
    "/",
    "/zone",
    f"/zones/{ID}/nothing",
    f"/zones/{ID}/firewall",
    "/zones/x",
    "//",
    "/user/nothing",
    "/accounts/x/storage",
)


@pytest.fixture(scope="module")
def failure():
    """The schema of one."""
    components = openapi.document(ROUTES)["components"]
    return {"$ref": "#/components/schemas/Failure", "components": components}


@pytest.mark.parametrize("path", NAMED)
def test_a_path_of_an_absent_product_is_the_known_404_with_a_word_for_people(api, failure, path):
    answer = api.get(path)

    assert (answer.status, answer.codes) == (404, [7003, 7000])
    (message,) = answer.json["messages"]
    assert message["code"] == 10_000
    jsonschema_rs.validate(failure, answer.json)
    assert message["message"].startswith(f"Not a part of Edgestead: {NAMED[path]}. ")


@pytest.mark.parametrize("path", UNNAMED)
def test_any_other_unknown_path_is_as_before(api, path):
    answer = api.get(path)

    assert (answer.status, answer.codes) == (404, [7003, 7000])
    assert answer.json["messages"] == []


def test_no_route_is_a_part_of_an_absent_product():
    served = [row.path for row in ROUTES if not row.has_ended]

    assert BASE == BASE_PATH
    assert {path: product_of(path) for path in served if product_of(path)} == {}


def test_the_list_of_differences_names_every_one():
    section = DIFFERENCES.read_text().partition("## Products that are not here\n")[2].partition("\n## ")[0]

    listed = " ".join(section.split()).partition(" the product: ")[2].rstrip(".")
    assert listed == "; ".join(PRODUCTS)
