"""When the certificates of a folder end.

Owns  reading the dates, each file once until it changes.
Not   which files belong to which name (`edge.http.certificates`); what is too soon (`health.checks`).
"""

from pathlib import Path

from edgestead.edge.http.certificates import FILE_BYTES_MAX, pair_of
from edgestead.health.facts import SECOND_US, Certificate

CERTIFICATES_MAX = 5_000  # entries of the folder that are looked at; a first look takes 40 µs for each

_Stamp = tuple[int, int, int]


class CertificateDates:
    """The certificates of one folder. `look` blocks for the disk; used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[_Stamp, int | None]] = {}
        self.fault = ""
        self.found: tuple[Certificate, ...] = ()

    def look(self) -> None:
        try:
            entries = sorted(self._folder.iterdir())[:CERTIFICATES_MAX]
        except OSError as error:
            self.fault = f"the folder of certificates {self._folder} cannot be read: {error.strerror}"
            self.found = ()
            return
        found, known = [], {}
        for entry in entries:
            try:
                pair = pair_of(entry)
                if pair is None or not (pair.chain.exists() and pair.key.exists()):
                    continue  # half of a pair: the other one is still to come
            except OSError:
                found.append(Certificate(entry.name, str(entry), None))
                continue
            known[pair.chain] = self._dated(pair.chain)
            found.append(Certificate(pair.name, str(pair.chain), known[pair.chain][1]))
        self._known = known
        self.fault = "" if found else f"{self._folder} holds no certificate"
        self.found = tuple(found)

    def _dated(self, chain: Path) -> tuple[_Stamp, int | None]:
        try:
            found = chain.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            known = self._known.get(chain)
            if known is not None and known[0] == stamp:
                return known
            from cryptography import x509  # 37 ms and 7 MiB, for servers that have any

            with chain.open("rb") as stream:
                ends = x509.load_pem_x509_certificate(stream.read(FILE_BYTES_MAX)).not_valid_after_utc
        except (OSError, ValueError):
            return (0, 0, 0), None
        return stamp, int(ends.timestamp()) * SECOND_US
