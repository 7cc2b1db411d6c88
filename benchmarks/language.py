"""What does a filter cost per request once it is compiled?

Prints, for ten typical expressions, medians in microseconds of a compiled call, of parsing and compiling for
every request, and of RE2 alone: one compiled pattern that answers the same about the same value, already at
hand. Expressions that no single pattern answers have none. The last line is the medians of both ratios.

Run: python benchmarks/language.py
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
# title: field, pattern
RE2 = {
    "host equals": ("http.host", rb"^shop\.example\.com$"),
    "path starts with": ("http.request.uri.path", rb"^/admin/"),
    "wildcard": ("http.host", rb"(?is)^.*\.example\.org$"),
    "lower and contains": ("http.user_agent", rb"(?i)sqlmap"),
    "regular expression": ("http.request.uri.path", rb"^/(?:wp-admin|wp-login|xmlrpc)[.]php"),
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


def re2_alone(title: str) -> float | None:
    """Microseconds of RE2's own call for the same question; None where there is no such pattern."""
    if title not in RE2:
        return None
    field, pattern = RE2[title]
    options = re2.Options()
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    search, value = re2.compile(pattern, options).search, REQUEST[field]
    return median_us(lambda: search(value) is not None, CALLS)


def main() -> None:
    view = warm_view()
    print("| expression | compiled, µs | parsed for each request, µs | times | RE2 alone, µs | times |")
    print("|---|---|---|---|---|---|")
    to_parsing, to_re2 = [], []
    for title, text in EXPRESSIONS.items():
        run = compile_filter(text, PHASE)
        compiled = median_us(lambda run=run: run(view), CALLS)
        parsed = median_us(lambda text=text: compile_filter(text, PHASE)(view), CALLS // 200)
        to_parsing.append(parsed / compiled)
        alone = re2_alone(title)
        last = "– | –"
        if alone is not None:
            to_re2.append(alone / compiled)
            last = f"{alone:.2f} | {alone / compiled:.2f} ×"
        print(f"| {title} | {compiled:.2f} | {parsed:.1f} | {parsed / compiled:.0f} × | {last} |")
    print(f"medians: parsing {statistics.median(to_parsing):.0f} ×, RE2 {statistics.median(to_re2):.2f} ×")


if __name__ == "__main__":
    main()
