"""Real servers as origins, each with a log of the requests that it has read."""

import json
import subprocess
import sys
from pathlib import Path

from edgestead.testing.server import wait_until

START_SECONDS_MAX = 180
END_SECONDS_MAX = 180

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;
events {{}}
http {{
  log_format seen '$status|$http_edge_ray|$request_uri';
  access_log {folder}/seen seen;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen {host}:{port}{http2}; location / {{ return 200 ok; }} }}
}}
"""
APACHE = """
ServerRoot {folder}
ServerName localhost
PidFile {folder}/pid
DefaultRuntimeDir {folder}
Mutex posixsem
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
Listen {host}:{port}
DocumentRoot {folder}/pages
ErrorLog {folder}/errors
LogFormat "%>s|%{{edge-ray}}i|%r" seen
CustomLog {folder}/seen seen
"""
CADDY = """
{{
  admin off
  auto_https off
}}
http://:{port} {{
  bind {host}
  log {{
    output file {folder}/seen
    format json
  }}
  respond "ok"
}}
"""
PYTHON = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    ray = dict(scope["headers"]).get(b"edge-ray", b"-").decode()
    with open(sys.argv[3], "a") as seen:
        seen.write("200|" + ray + "|" + scope["raw_path"].decode() + "\\n")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
uvicorn.run(app, host=sys.argv[1], port=int(sys.argv[2]), http="h11", log_level="error")
"""


class RealOrigin:
    """A server in a process of its own. `seen` are (ray, path) of each request that it has read."""

    def __init__(self, kind, folder, host, port):
        folder.mkdir()
        (folder / "pages").mkdir()
        self.kind, self.folder, self.host, self.port = kind, folder, host, port
        with (folder / "said").open("wb") as said:
            self._process = subprocess.Popen(
                self._command(), cwd=folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                env={"HOME": str(folder), "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            )  # fmt: skip

    def _command(self):
        http2 = " http2" if self.kind == "nginx-h2c" else ""
        known = {"folder": self.folder, "host": self.host, "port": self.port, "http2": http2}
        if self.kind == "python":
            return [sys.executable, "-c", PYTHON, self.host, str(self.port), str(self.folder / "seen")]
        config = self.folder / "config"
        text = {"nginx": NGINX, "nginx-h2c": NGINX, "apache": APACHE, "caddy": CADDY}[self.kind]
        config.write_text(text.format(**known))
        nginx = ["nginx", "-c", str(config), "-p", str(self.folder), "-e", str(self.folder / "errors")]
        return {
            "nginx": nginx,
            "nginx-h2c": nginx,
            "apache": ["apache2", "-X", "-f", str(config)],
            "caddy": ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"],
        }[self.kind]

    def wait(self, answers):
        """Until `answers()` is true; fails with what the server said when it ends first."""

        def checked():
            assert self._process.poll() is None, Path(self.folder, "said").read_text()
            return answers()

        wait_until(checked, START_SECONDS_MAX)

    @property
    def seen(self):
        file = self.folder / "seen"
        *lines, _ = file.read_text().split("\n") if file.exists() else [""]  # the last is not written yet
        if self.kind == "caddy":
            return [_caddy_row(json.loads(line)) for line in lines if '"request"' in line]
        rows = [line.split("|", 2)[1:] for line in lines]
        if self.kind == "apache":  # a request line, or "-" where there was none
            return [(ray, [*line.split(" "), ""][1]) for ray, line in rows]
        return [(ray, path) for ray, path in rows]

    def close(self):
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _caddy_row(entry):
    request = entry["request"]
    return request["headers"].get("Edge-Ray", ["-"])[0], request["uri"]
