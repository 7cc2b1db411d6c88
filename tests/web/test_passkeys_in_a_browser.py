"""A passkey in a real browser: registered, and signed in with, by an authenticator that Chromium plays."""

from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.virtual_authenticator import VirtualAuthenticatorOptions

from edgestead.model.roles import ROLES
from edgestead.testing.server import EdgeServer
from tests.edge import chromium
from tests.support.patience import patient
from tests.web.test_in_a_browser import Person
from tests.web.test_members_in_a_browser import PASSWORD, typed

pytestmark = chromium.needed


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("passkeys")
    made = EdgeServer(folder / "data", *patient(folder)).start()
    yield made
    made.close()


def authenticator():
    """A device of the machine itself that keeps keys, and whose owner always agrees."""
    made = VirtualAuthenticatorOptions()
    made.protocol = VirtualAuthenticatorOptions.Protocol.CTAP2
    made.transport = VirtualAuthenticatorOptions.Transport.INTERNAL
    made.has_resident_key = made.has_user_verification = made.is_user_verified = True
    return made


def test_a_passkey_is_registered_and_signs_in(server, tmp_path_factory):
    place = urlsplit(server.ready["api_base"])
    body = {"email": "ann@example.com", "roles": [ROLES[-1].id]}
    made = server.call("POST", f"/accounts/{server.ready['account_id']}/members", body).result
    with chromium.browsing(tmp_path_factory.mktemp("chromium"), {"localhost": place.hostname}) as driver:
        person = Person(driver, server)
        driver.get(f"{person.base}/ui/sign-in")
        person.sees(f"open http://localhost:{place.port}")
        driver.add_virtual_authenticator(authenticator())
        driver.get(f"http://localhost:{place.port}/ui/invite?code={made['code']}")
        typed(person, password=PASSWORD, again=PASSWORD)
        person.press("Set the password")
        person.follow("You")
        typed(person, name="This laptop")
        person.press("Register a passkey")
        person.sees("The passkey This laptop is registered")
        person.sees(f"http://localhost:{place.port}")
        person.press("Sign out")

        person.press("Sign in with a passkey")
        person.follow("You")
        person.sees("ann@example.com")
        person.press("Remove the passkey This laptop", asked="Remove the passkey This laptop?")
        person.sees("The passkey is removed")
        person.press("Sign out")
        person.press("Sign in with a passkey")
        person.sees("This passkey signs nobody in here")
        said = [one for one in driver.get_log("browser") if "403" not in one["message"]]
        assert said == [], "403 is the refusal of the removed passkey"
