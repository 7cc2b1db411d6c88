"""What the tests of the REST routes share."""

from urllib.parse import quote

from tests.support.api import CREDENTIALS, FIRST_US

ACCOUNT = CREDENTIALS.account_id
NAMESPACES = f"/accounts/{ACCOUNT}/storage/kv/namespaces"
NOW_S = FIRST_US // 1_000_000


class Namespace:
    """One namespace behind a LocalApi."""

    def __init__(self, api, id_, base=NAMESPACES):
        self.api = api
        self.id = id_
        self.path = f"{base}/{id_}"

    def value_path(self, key, query=""):
        return f"{self.path}/values/{quote(key, safe='')}{query}"

    def put(self, key, content=b"v", query="", **options):
        return self.api.put(self.value_path(key, query), content, **options)

    def get(self, key, **options):
        return self.api.get(self.value_path(key), **options)

    def delete(self, key):
        return self.api.delete(self.value_path(key))

    def metadata(self, key):
        return self.api.get(f"{self.path}/metadata/{quote(key, safe='')}")

    def keys(self, query=""):
        return self.api.get(f"{self.path}/keys{query}")

    def bulk(self, pairs):
        return self.api.put(f"{self.path}/bulk", pairs)


def form(**parts):
    """A multipart body, and the headers that go with it."""
    boundary = "x-boundary"
    text = b""
    for name, content in parts.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n\r\n'
        text += head.encode() + content + b"\r\n"
    return text + f"--{boundary}--\r\n".encode(), {
        "content-type": f"multipart/form-data; boundary={boundary}"
    }


def blob_ids(api):
    """The blobs that are left once the store has cleaned up behind its writes."""
    api.kv.store.delete("0" * 32, []).result(60)  # waits for the turn after them
    return list(api.kv.store.blobs.idle_ids(float("inf")))
