"""Take the picture of the dashboard that README and docs show: `.venv/bin/python -m docs.pictures.dashboard`.

It needs chromium, chromedriver and the package modsecurity-crs; run it by hand when the pages look different.

Owns  docs/pictures/dashboard.png: an event of a zone that was made for it.
Not   checking pages (`tests/web/test_in_a_browser.py`).
"""

import tempfile
from pathlib import Path

from selenium.webdriver.common.by import By

from tests.edge import chromium
from tests.edge.conftest import Site
from tests.edge.test_managed_server import deployed
from tests.web.conftest import link_of

PICTURE = Path(__file__).with_suffix(".png")
BYTES_MAX = 120 << 10
WIDTH, HEIGHT = 960, 690  # CSS pixels
ATTACK = "/search?q=1+union+select+name+from+users"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), zone="example.com")
        try:
            PICTURE.write_bytes(picture(site, Path(folder) / "chromium"))
        finally:
            site.close()
    assert PICTURE.stat().st_size <= BYTES_MAX, "the picture is too large for a README"


def picture(site: Site, profile: Path) -> bytes:
    """A PNG of the page of the event that `ATTACK` makes."""
    _, origin = deployed(site)
    host = f"www.{site.zone}"
    site.server.make_record(site.zone_id, "A", host, origin.host, proxied=True)
    site.get(host, ATTACK, "User-Agent: curl/8", "Accept: */*")
    path = f"/zones/{site.zone_id}/security/events?action=block"
    site.server.wait_until(lambda: site.server.call("GET", path).result, chromium.WAIT_SECONDS)
    (event,) = site.server.call("GET", path).result

    place = site.server.ready["api_base"].split("/")[2]
    with chromium.browsing(profile, {"localhost": place}) as driver:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        driver.get(f"http://{place}{link_of(site.server)}")
        driver.find_element(By.CSS_SELECTOR, "main button").click()
        chromium.wait_for(driver, lambda opened: "Health" in opened.page_source, "nobody is signed in")
        driver.get(f"http://{place}/ui/zones/{site.zone}/events/{event['id']}")
        return driver.get_screenshot_as_png()


if __name__ == "__main__":
    main()
