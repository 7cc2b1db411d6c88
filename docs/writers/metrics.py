"""The reference page of metrics, written from their table.

Owns  the page's words around the facts.
Not   a fact of its own: kind, processes and labels come from the row.
"""

from edgestead.model.counters import METRICS

_MICROSECONDS = 1_000_000  # in a second


def page() -> str:
    """docs/reference/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "`GET /metrics` on the API's address answers the prometheus text format, version 0.0.4. Every sample",
        "carries `process`, the name of the process that counted (`control`, `dns-0`, …, `dns-tcp`):",
        "sum over it for the whole server. Counters survive the restart of a process and start at zero with",
        "the server. Where the API listens on more than loopback, it takes a token with *Metrics Read*",
        "([configuration](configuration.md#metrics-open)). A user has it, no account, as metrics tell",
        "of all accounts together: `edgecli token create prometheus -p 'Metrics Read'`.",
    ]
    for metric in METRICS:
        lines += ["", f"## {metric.name}", "", f"{metric.help}", "", f"- kind: {metric.kind}"]
        lines.append("- processes: " + ", ".join(metric.roles))
        if metric.values:
            lines.append(f"- label `{metric.label}`: " + ", ".join(metric.values))
        if metric.rows:
            lines.append(f"- label `{metric.label}`: at most {metric.rows} values")
        if metric.bounds_us:
            bounds = ", ".join(f"{bound / _MICROSECONDS:g}" for bound in metric.bounds_us)
            lines.append(f"- buckets in seconds: {bounds}")
    return "\n".join(lines) + "\n"
