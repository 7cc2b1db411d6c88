"""Which pictures of the dashboard there are: at least one of each page.

Owns  the table: a picture's name, whose page it is, its address, what is done there first.
Not   taking them (`docs.pictures.taking`), words about them (docs/explanation/dashboard.md).
"""

from collections.abc import Callable
from typing import NamedTuple

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from edgestead.web.visit import ROOT
from tests.edge import chromium

ZONE = f"{ROOT}/zones/{{zone}}"
OBJECT = f"{ROOT}/objects/Show/{{object}}"
NOT_PICTURED = {
    f"{ROOT}/live": "a stream, seen on the overview",
    f"{ROOT}/zones/{{zone}}/export": "a file",
    f"{ROOT}/audit/export": "a file",
    f"{ROOT}/zones/{{zone}}/rules/check": "a part of the editor, alone only without script",
    f"{ROOT}/rules/check": "the same",
    f"{ROOT}/cluster": "a node of a cluster alone has it",
    f"{ROOT}/rules/{{where}}/{{rule}}": "as the editor of a zone's rule",
}
FILE = """$ORIGIN example.com.
www     300 IN A     192.0.2.80
status  300 IN CNAME status.example.net.
_sip._tcp   IN SRV   0 5 5060 vpn.example.com.
"""


class Picture(NamedTuple):
    """`row` is the page's in the table of pages. `has` are words that stand on it; `then` is done before.

    `height_max` is in CSS pixels: the page's beginning is shown, or where `then` scrolled to.
    """

    name: str
    row: str
    target: str
    has: str
    then: Callable[[Chrome], None] = lambda driver: None
    scheme: str = "light"
    signed_in: bool = True
    height_max: int = 860
    from_top: bool = True


def typed(name: str, text: str) -> Callable[[Chrome], None]:
    """Write into a field, and press the first button of its form."""

    def do(driver: Chrome) -> None:
        field = driver.find_element(By.CSS_SELECTOR, f'main [name="{name}"]')
        field.clear()
        field.send_keys(text)
        driver.find_element(By.XPATH, f'//main//*[@name="{name}"]/ancestor::form//button').click()

    return do


def _last(driver: Chrome) -> None:
    driver.find_element(By.LINK_TEXT, "Was it a good request?").click()


def _tried(driver: Chrome) -> None:
    typed("url", "http://www.example.com/wp-login.php")(driver)
    chromium.wait_for(driver, lambda opened: ">yes</span>" in opened.page_source, "nothing matches")


PICTURES = (
    Picture("overview", ROOT, ROOT, "DNS queries", height_max=1_050),
    Picture("overview-dark", ROOT, ROOT, "DNS queries", scheme="dark", height_max=1_050),
    Picture("examination", f"{ROOT}/examination", f"{ROOT}/examination", "has no record"),
    Picture("zones", f"{ROOT}/zones", f"{ROOT}/zones", "shop.example"),
    Picture("records", f"{ROOT}/zones/{{zone}}", ZONE, "_imaps._tcp"),
    Picture(
        "edit",
        f"{ROOT}/zones/{{zone}}",
        f"{ZONE}?edit={{record}}",
        "edit-content-error",
        typed("content", "192.0.2.256"),
        height_max=1_000,
    ),
    Picture(
        "record", f"{ROOT}/zones/{{zone}}/records/{{record}}", f"{ZONE}/records/{{record}}", "192.0.2.26"
    ),
    Picture(
        "import", f"{ROOT}/zones/{{zone}}/import", f"{ZONE}/import", "What it would add", typed("file", FILE)
    ),
    Picture("history", f"{ROOT}/zones/{{zone}}/history", f"{ZONE}/history", "Restore to here"),
    Picture(
        "undo",
        f"{ROOT}/zones/{{zone}}/history/{{sequence}}/{{way}}",
        f"{ZONE}/history/{{change}}/undo",
        "What this would change",
    ),
    Picture("settings", f"{ROOT}/zones/{{zone}}/settings", f"{ZONE}/settings", "always_use_https"),
    Picture("rules", f"{ROOT}/zones/{{zone}}/rules", f"{ZONE}/rules", "We have no WordPress"),
    Picture(
        "rule",
        f"{ROOT}/zones/{{zone}}/rules/{{phase}}/{{rule}}",
        f"{ZONE}/rules/{{phase}}/{{rule}}",
        "Strangers prove",
    ),
    Picture("account-rules", f"{ROOT}/rules", f"{ROOT}/rules", "Crawlers", height_max=1_000),
    Picture(
        *("try", f"{ROOT}/zones/{{zone}}/rules/try", f"{ZONE}/rules/try", "What each rule would do", _tried),
        height_max=1_100,
    ),
    Picture(
        *("waf", f"{ROOT}/zones/{{zone}}/waf", f"{ZONE}/waf?level=2&threshold=25&action=block", "would have"),
        height_max=1_000,
    ),
    Picture("events", f"{ROOT}/zones/{{zone}}/events", f"{ZONE}/events", "198.51.100.7"),
    Picture("event", f"{ROOT}/zones/{{zone}}/events/{{event}}", f"{ZONE}/events/{{event}}", "What scored"),
    Picture(
        *(
            "exception",
            f"{ROOT}/zones/{{zone}}/events/{{event}}",
            f"{ZONE}/events/{{event}}",
            "would have passed",
        ),
        then=_last,
        from_top=False,
        height_max=700,
    ),
    Picture(
        "event-dark",
        f"{ROOT}/zones/{{zone}}/events/{{event}}",
        f"{ZONE}/events/{{event}}",
        "What scored",
        scheme="dark",
    ),
    Picture("values", f"{ROOT}/values", f"{ROOT}/values", "configuration"),
    Picture("keys", f"{ROOT}/values/{{namespace}}", f"{ROOT}/values/{{namespace}}", "session:7f3a"),
    Picture("value", f"{ROOT}/values/{{namespace}}/{{key}}", f"{ROOT}/values/{{namespace}}/flags", "As JSON"),
    Picture("classes", f"{ROOT}/objects", f"{ROOT}/objects", "Cart"),
    Picture("objects", f"{ROOT}/objects/{{class_name}}", f"{ROOT}/objects/Show", "friday"),
    Picture("object", f"{ROOT}/objects/{{class_name}}/{{object_id}}", OBJECT, "seats"),
    Picture("sql", f"{ROOT}/objects/{{class_name}}/{{object_id}}/sql", f"{OBJECT}/sql?table=seats", "bob"),
    Picture(
        "past",
        f"{ROOT}/objects/{{class_name}}/{{object_id}}/past",
        f"{OBJECT}/past?step=3",
        "What changed then",
    ),
    Picture(
        "past-dark",
        f"{ROOT}/objects/{{class_name}}/{{object_id}}/past",
        f"{OBJECT}/past?step=3",
        "What changed then",
        scheme="dark",
    ),
    Picture("tokens", f"{ROOT}/tokens", f"{ROOT}/tokens", "certbot on web1"),
    Picture("new-token", f"{ROOT}/tokens/new", f"{ROOT}/tokens/new", "What it is for"),
    Picture("dates", f"{ROOT}/dates", f"{ROOT}/dates", "/filters"),
    Picture("members", f"{ROOT}/members", f"{ROOT}/members", "bob@example.com"),
    Picture("audit", f"{ROOT}/audit", f"{ROOT}/audit", "example.com"),
    Picture("you", f"{ROOT}/profile", f"{ROOT}/profile", "Passkeys"),
    Picture("sign-in", f"{ROOT}/sign-in", f"{ROOT}/sign-in", "API token", signed_in=False),
    Picture("link", f"{ROOT}/enter", f"{ROOT}/enter?code=x", "once", signed_in=False),
    Picture("invitation", f"{ROOT}/invite", f"{ROOT}/invite?code={{invitation}}", "bob@", signed_in=False),
)
