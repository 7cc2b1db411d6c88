"""Taking pictures of the dashboard in a real browser.

Owns  the browser's window, the data of an hour in the overview's charts, making files small.
Not   which pictures there are (`docs.pictures.pages`).

An hour of traffic takes an hour: the charts of the overview are drawn by its own code from made-up counters.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import jinja2
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from docs.pictures.example import MEMBER, PASSWORD, Example
from docs.pictures.pages import Picture
from edgestead.web.charts import charts
from edgestead.web.samples import POINTS_MAX, SAMPLE_SECONDS, Samples
from edgestead.web.visit import ROOT
from tests.edge import chromium

WIDTH, HEIGHT_MIN = 960, 300  # CSS pixels
COLOURS = 128  # of a picture
BOUNDS = ("0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "+Inf")


@contextmanager
def photographer(example: Example, folder: Path) -> Iterator["Photographer"]:
    place = example.server.ready["api_base"].split("/")[2]
    with chromium.browsing(folder, {"localhost": place}) as driver:
        yield Photographer(driver, example, f"http://localhost:{place.rpartition(':')[2]}")


class Photographer:
    """A browser in which the member of the example signs in, where a page asks for it."""

    def __init__(self, driver: Chrome, example: Example, base: str) -> None:
        self._driver, self._example, self._base = driver, example, base
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        self._signed_in = False

    def take(self, picture: Picture) -> bytes:
        """A small PNG. Raises TimeoutException: the page has not what it should."""
        driver = self._driver
        self._window(HEIGHT_MIN, picture.scheme)
        if picture.signed_in is not self._signed_in:
            self._sign_in_or_out(picture.signed_in)
        driver.get(self._base + picture.target.format(**self._example.facts))
        picture.then(driver)
        chromium.wait_for(
            driver, lambda opened: picture.has in opened.page_source, f"{picture.name}: {picture.has}"
        )
        if picture.row == ROOT:
            self._draw_an_hour()
        height = driver.execute_script("return document.documentElement.scrollHeight")
        self._window(max(HEIGHT_MIN, min(height, picture.height_max)), picture.scheme)
        driver.execute_script("document.activeElement?.blur()")
        if picture.from_top:
            driver.execute_script("window.scrollTo(0, 0)")
        return _small(driver.get_screenshot_as_png())

    def _window(self, height: int, scheme: str) -> None:
        size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def _sign_in_or_out(self, wanted: bool) -> None:
        driver = self._driver
        driver.get(f"{self._base}{ROOT}/sign-in")
        driver.delete_all_cookies()
        if wanted:
            driver.refresh()  # the form's key goes with a cookie of this browser
            driver.find_element(By.NAME, "email").send_keys(MEMBER)
            driver.find_element(By.NAME, "password").send_keys(PASSWORD)
            driver.find_element(By.CSS_SELECTOR, "main button").click()
            chromium.wait_for(driver, lambda opened: "Sign out" in opened.page_source, "nobody is signed in")
        self._signed_in = wanted

    def _draw_an_hour(self) -> None:
        shown = json.loads(self._example.operator.get(f"{ROOT}.json").text)
        shown["charts"] = charts(an_hour(), "hour")
        place = "document.querySelector('#live')"
        self._driver.execute_script(
            f"{place}.replaceWith(Object.assign({place}.cloneNode(), {{innerHTML: arguments[0]}}))",
            _rendered(shown),
        )


def _rendered(data: dict) -> str:
    folder = files("edgestead.web") / "templates"
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(str(folder)), autoescape=True)
    made.filters["segment"] = str  # of links that this part has not
    return made.get_template("live.html").render(data)


def an_hour() -> Samples:
    """Counters of a quiet site with an attack in the middle."""
    now = [0.0]
    totals: dict[str, float] = {}
    samples = Samples(lambda: "\n".join(f"{name} {count}" for name, count in totals.items()), lambda: now[0])
    for number in range(POINTS_MAX["hour"] + 1):
        _grow(totals, number)
        now[0] += SAMPLE_SECONDS
        samples.take()
    return samples


def _grow(totals: dict[str, float], number: int) -> None:
    def add(name: str, a_second: float, **labels: str) -> None:
        words = ",".join(f'{label}="{value}"' for label, value in {"process": "one", **labels}.items())
        name = f"{name}{{{words}}}"
        totals[name] = totals.get(name, 0.0) + a_second * SAMPLE_SECONDS

    wave = 1 + 0.25 * math.sin(number / 23) + 0.12 * math.sin(number / 3.1) + 0.08 * math.sin(number * 1.7)
    attack = max(0.0, 1 - abs(number - 230) / 22)
    add("edge_dns_queries_total", 140 * wave)
    for status, a_second in (
        ("2xx", 32 * wave),
        ("3xx", 3 * wave),
        ("4xx", 1.5 * wave + 24 * attack),
        ("5xx", 0.05),
    ):
        add("edge_http_requests_total", a_second, status=status)
    for action, a_second in (
        ("block", 0.3 * wave + 21 * attack),
        ("managed_challenge", 0.6 * wave),
        ("log", 0.2),
    ):
        add("edge_events_total", a_second, action=action)
    for status, a_second in (("2xx", 2.5 * wave), ("4xx", 0.05), ("5xx", 0.0)):
        add("edge_api_requests_total", a_second, status=status)
    for name, a_second, half in (
        ("edge_http_request_seconds", 36 * wave + 24 * attack, 3 + 2 * attack),
        ("edge_api_request_seconds", 2.5 * wave, 2),
        ("edge_dns_answer_seconds", 140 * wave, 0.4),
    ):
        for place, bound in enumerate(BOUNDS):
            share = 1 / (1 + math.exp(-1.6 * (place - half - 0.3 * wave)))
            add(f"{name}_bucket", a_second * (1.0 if bound == "+Inf" else share), le=bound)


def _small(picture: bytes) -> bytes:
    """With few colours, each the same everywhere: a picture of text needs no more."""
    image = Image.open(BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    made = BytesIO()
    image.save(made, "PNG", optimize=True)
    return made.getvalue()
