"""Content as filters compare it: decoded, white space folded, case ignored.

Owns  that one form, for what is stored and for what is asked.
Not   the duplicate check: that compares `to_wire()`.
"""

from edgestead.model.records.table import Rdata
from edgestead.model.records.txt import TXT
from edgestead.model.refusals.record import RecordRefused


def fold(text: str) -> str:
    """Runs of white space become one blank, none at the ends; case folded."""
    return " ".join(text.split()).casefold()


def folded_content(rdata: Rdata) -> str:
    """What filters see of a record: TXT joined and without quotes, every other type its `content`."""
    if isinstance(rdata, TXT):
        return fold(rdata.text.decode("utf-8", "replace"))
    return fold(rdata.to_content())


def folded_query(text: str) -> str:
    """A filter's value in the same form. Complete quotes come off: `"abc"` and `abc` find the same."""
    if '"' in text or "\\" in text:
        try:
            return folded_content(TXT.from_content(text))
        except RecordRefused:
            pass  # part of a quoted text, or content of another type
    return fold(text)
