"""Where octets are that should not be there: in the memory of processes, in files.

Owns  reading both.
Not   what is sought.
"""

from pathlib import Path


def memory_of(pid):
    """Everything that a process could read of its own, a region at a time."""
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if rights[0] != "r" or "[v" in line:
                continue
            begin, end = (int(number, 16) for number in span.split("-"))
            try:
                memory.seek(begin)
                yield memory.read(end - begin)
            except (OSError, ValueError, OverflowError):
                continue


def found_at(server, sought):
    """Which of these octets are in files and processes of a server: pairs of the names of both."""
    found = set()
    for path in server.data_dir.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found |= {(what, str(path)) for what, octets in sought.items() if octets in content}
    for name, pid in server.children().items():
        for part in memory_of(pid):
            found |= {(what, name) for what, octets in sought.items() if octets in part}
    return found
