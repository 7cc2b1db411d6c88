"""What does a filter cost per request once it is compiled?

Prints, for ten typical expressions, medians in microseconds of a compiled call, of parsing and compiling for
every request, and of the bare operation a rule author could not do without: RE2 alone where the expression
matches a regular expression. Run: python benchmarks/language.py
"""

import statistics
import timeit

import re2

from edgestead.language import FIELDS, LazyView, View, compile_filter, ip_value, loader_table

PHASE = "http_request_firewall_custom"
UA = b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36"
REQUEST = {
    "http.host": b"www.example.com",
    "http.request.method": b"GET",
    "http.request.uri.path": b"/articles/2026/a-rather-usual-path/index.html",
    "http.request.uri.query": b"page=2&sort=date&utm_source=newsletter",
    "http.user_agent": UA,
    "http.request.headers": {
        b"accept": [b"text/html,application/xhtml+xml"],
        b"x-forwarded-for": [b"192.0.2.1"],
    },
    "ip.src": ip_value("192.0.2.77"),
    "ip.src.country": b"NL",
    "ip.src.asnum": 64_500,
    "ssl": True,
}
NETWORKS = " ".join(f"10.{n}.0.0/16 198.51.100.{n}" for n in range(50))
EXPRESSIONS = {
    "true": "true",
    "host equals": 'http.host eq "shop.example.com"',
    "path starts with": 'starts_with(http.request.uri.path, "/admin/")',
    "two paths and a method": (
        '(http.request.uri.path contains "/wp-login.php" or http.request.uri.path contains "/xmlrpc.php")'
        ' and http.request.method eq "POST"'
    ),
    "country set, not a network": (
        'ip.src.country in {"CN" "RU" "KP" "IR" "SY"} and not ip.src in {192.0.2.0/24}'
    ),
    "100 networks": f"ip.src in {{{NETWORKS}}}",
    "wildcard": 'http.host wildcard "*.example.org"',
    "lower and contains": 'lower(http.user_agent) contains "sqlmap"',
    "any header": 'any(http.request.headers["accept"][*] contains "application/json")',
    "regular expression": 'http.request.uri.path matches "^/(?:wp-admin|wp-login|xmlrpc)[.]php"',
}
CALLS = 20_000
ROUNDS = 7


def median_us(run: object, calls: int) -> float:
    timer = timeit.Timer("run()", globals={"run": run})
    return statistics.median(timer.repeat(ROUNDS, calls)) / calls * 1e6


def warm_view() -> View:
    """A view whose fields are already loaded: the state that all but the first rule of a phase meet."""
    view = LazyView(
        REQUEST, loader_table({name: lambda request, name=name: request[name] for name in REQUEST})
    )
    for name in REQUEST:
        view[FIELDS[name].slot]
    return view


def main() -> None:
    view = warm_view()
    print(f"{'expression':28}{'compiled':>10}{'parsed':>10}{'ratio':>8}   (microseconds per request)")
    for title, text in EXPRESSIONS.items():
        run = compile_filter(text, PHASE)
        compiled = median_us(lambda run=run: run(view), CALLS)
        parsed = median_us(lambda text=text: compile_filter(text, PHASE)(view), CALLS // 200)
        print(f"{title:28}{compiled:10.3f}{parsed:10.1f}{parsed / compiled:8.0f}")
    regex = re2.compile(rb"^/(?:wp-admin|wp-login|xmlrpc)[.]php")
    path = REQUEST["http.request.uri.path"]
    alone = median_us(lambda: regex.search(path) is not None, CALLS)
    ours = median_us(lambda run=run: run(view), CALLS)
    print(f"re2 alone {alone:.3f}, our regular expression {ours:.3f}: {ours / alone:.2f} times")


if __name__ == "__main__":
    main()
