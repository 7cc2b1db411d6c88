"""A proxy in front of the real server that fails when it is told to."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class FlakyProxy:
    """`plan(number, body)` decides for each request that has a body or deletes, counted from 0: None forwards
    it, a number is answered as that status, "drop" closes the connection without a word, "late drop" after
    forwarding. Answers to paths that end in `cut` break off half-way.
    """

    def __init__(self, target, plan=lambda number, body: None, *, cut="nothing"):
        self.cut = cut
        self.target = urlsplit(target)
        self.plan = plan
        self.count = 0
        self.bodies = []
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_port}{self.target.path}"

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(proxy):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                verdict = None
                if body or self.command == "DELETE":
                    with proxy.lock:
                        number, proxy.count = proxy.count, proxy.count + 1
                        proxy.bodies.append(body)
                    verdict = proxy.plan(number, body)
                if verdict == "drop":
                    self.close_connection = True
                    return
                if isinstance(verdict, int):
                    self.answer(verdict, b'{"errors":[{"code":1,"message":"planned"}]}')
                    return
                connection = http.client.HTTPConnection(proxy.target.hostname, proxy.target.port)
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                if verdict == "late drop":
                    self.close_connection = True
                    return
                self.answer(answer.status, content)

            def answer(self, status, content):
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                if status == 429:
                    self.send_header("Retry-After", "0")
                self.end_headers()
                if self.path.endswith(proxy.cut):
                    self.close_connection = True
                    content = content[: len(content) // 2]
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = forward

        return Handler
