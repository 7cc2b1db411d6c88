"""The reference page of the server's configuration, written from its options.

Owns  the page's words around the facts.
Not   a fact of its own: help, value and default come from the option.
"""

from edgestead.config import OPTIONS, default_words
from edgestead.config_alerts import KEYS


def page() -> str:
    """docs/reference/configuration.md."""
    lines = [
        "# Configuration",
        "",
        "`edgecli serve --config FILE` reads its settings from a TOML file. A key that is also a flag of",
        "`edgecli serve` is spelled like the flag without the dashes in front; a flag wins over the file. A",
        "flag that may be repeated is an array. Paths are relative to the folder the server is started in.",
        "Unknown keys are refused.",
        "",
        "```toml",
        'api = "127.0.0.1:8787"',
        "dns-workers = 2",
        'nameserver = ["ns1.example.net", "ns2.example.net"]',
        "```",
    ]
    for option in OPTIONS:
        spelled = f"flag `--{option.key}`" if option.flag else "only in the file"
        lines += ["", f"## {option.key}", "", option.help, ""]
        lines.append(f"- value: `{option.metavar}`{', an array of them' if option.many else ''} ({spelled})")
        lines.append(f"- default: {default_words(option)}")
        if option.key == "alert":
            lines += ["", "| key | value | default | what it is |", "|---|---|---|---|"]
            lines += [f"| `{k.name}` | `{_cell(k.metavar)}` | {k.default} | {k.help} |" for k in KEYS]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
