"""A member from the invitation to the end, in a real browser: links and buttons alone."""

from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from edgestead.testing.server import EdgeServer
from tests.edge import chromium
from tests.support.patience import patient
from tests.web.conftest import link_of
from tests.web.test_in_a_browser import Person

pytestmark = chromium.needed

PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    made = EdgeServer(folder / "data", *patient(folder)).start()
    yield made
    made.close()


def typed(person, **fields):
    for name, text in fields.items():
        field = person.find(f'//input[@name="{name}" and not(@type="hidden")]')
        field.clear()
        field.send_keys(text)


def test_a_member_is_invited_signs_in_and_is_removed(server, tmp_path_factory):
    place = urlsplit(server.ready["api_base"]).netloc
    server.make_zone("shared.example")
    with chromium.browsing(tmp_path_factory.mktemp("chromium"), {"localhost": place}) as driver:
        person = Person(driver, server)
        driver.get(person.base + link_of(server))
        person.press("Sign in")
        person.follow("Members")
        typed(person, email="ann@example.com")
        Select(person.find('//form[@class="card"]//select[@name="role"]')).select_by_index(0)  # the least
        person.press("Invite")
        person.sees("lets ann@example.com set a password")
        link = driver.find_element(By.CSS_SELECTOR, ".said a").get_attribute("href")
        person.press("Sign out")

        driver.get(link)
        typed(person, first_name="Ann", password=PASSWORD, again=PASSWORD)
        person.press("Set the password")
        person.follow("You")
        person.sees("Administrator Read Only")
        person.press("Sign out")
        typed(person, email="ann@example.com", password=PASSWORD)
        person.press("Sign in")
        person.follow("Zones")
        person.sees("shared.example")
        (member,) = (
            one
            for one in server.call("GET", f"/accounts/{server.ready['account_id']}/members").result
            if one["email"] == "ann@example.com"
        )
        server.call("DELETE", f"/accounts/{server.ready['account_id']}/members/{member['id']}")
        person.follow("Zones")
        person.find('//input[@name="password"]')
        assert driver.get_log("browser") == []
