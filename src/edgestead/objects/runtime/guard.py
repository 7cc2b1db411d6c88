"""What user SQL may touch: tables of allow and deny, and the authorizer that reads them.

Owns  the hidden tables' prefix, the allowed pragmas, functions and virtual tables.
Not   transactions and limits (`database`, `sql`).

The authorizer is installed once: exchanging it makes SQLite prepare everything again. Our own statements,
and only they, run with `trusted` set, and their text holds a secret, or a user's equal text would find them
in the statement cache, already authorised.
"""

from typing import Final

import apsw

HIDDEN_PREFIX: Final = "_edge_"
_INDEX_PREFIX = "sqlite_autoindex_"  # SQLite's own indexes are called by their tables

PRAGMAS_READ = frozenset(
    "data_version foreign_key_check foreign_key_list function_list index_info index_list index_xinfo "
    "page_count page_size quick_check table_info table_list table_xinfo freelist_count".split()
)
"""Pragmas that may be asked, with a table or index for argument where they take one, but never set."""
PRAGMAS_SET = frozenset(
    "case_sensitive_like defer_foreign_keys foreign_keys ignore_check_constraints legacy_alter_table "
    "optimize recursive_triggers reverse_unordered_selects".split()
)
"""Pragmas that change this connection only, and nothing that storage relies on."""
PRAGMAS_WITH_NAME = PRAGMAS_READ - {"data_version", "page_count", "page_size", "freelist_count"}

FUNCTIONS_DENIED = frozenset(
    "load_extension sqlite_version sqlite_source_id sqlite_compileoption_get sqlite_compileoption_used "
    "sqlite_log sqlite_offset fts3_tokenizer readfile writefile edit randomblob_file".split()
)
"""Functions that reveal the build, reach outside, or write."""

MODULES_ALLOWED = frozenset({"fts5", "fts5vocab", "rtree", "rtree_i32", "geopoly"})
"""Virtual tables that a user may create."""
TABLES_DENIED = frozenset(
    "dbstat sqlite_dbpage sqlite_dbdata sqlite_dbptr sqlite_stmt sqlite_memstat bytecode tables_used "
    "carray completion pragma_module_list pragma_compile_options pragma_database_list "
    "pragma_vfs_list".split()
)
"""Tables without a row in the schema that show pages, statements, files or memory."""

_NEVER = frozenset(
    {
        apsw.SQLITE_TRANSACTION,
        apsw.SQLITE_SAVEPOINT,
        apsw.SQLITE_ATTACH,
        apsw.SQLITE_DETACH,
        apsw.SQLITE_CREATE_TEMP_INDEX,
        apsw.SQLITE_CREATE_TEMP_TABLE,
        apsw.SQLITE_CREATE_TEMP_TRIGGER,
        apsw.SQLITE_CREATE_TEMP_VIEW,
    }
)
_CREATES = frozenset(
    {
        apsw.SQLITE_CREATE_INDEX,
        apsw.SQLITE_CREATE_TABLE,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_CREATE_VIEW,
        apsw.SQLITE_CREATE_VTABLE,
    }
)
_TRANSACTION_WORDS = (
    "To execute a transaction, please use the storage.transaction() or storage.transaction_sync() "
    "methods instead of the SQL statements BEGIN TRANSACTION, SAVEPOINT, COMMIT or ROLLBACK"
)


class Guard:
    """The authorizer of one connection.

    `sets_pragmas` is False for visitors: what they set would change how the object's own statements run.
    """

    __slots__ = ("_refusal", "sets_pragmas", "trusted")

    def __init__(self) -> None:
        self.trusted = False
        self.sets_pragmas = True
        self._refusal: str | None = None

    def take_refusal(self) -> str | None:
        """Why the statement that just failed was denied, if we know better than SQLite."""
        refusal, self._refusal = self._refusal, None
        return refusal

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, inner: str | None
    ) -> int:
        if self.trusted:
            return apsw.SQLITE_OK
        if action in (apsw.SQLITE_ANALYZE, apsw.SQLITE_REINDEX) and is_hidden(first):
            return apsw.SQLITE_IGNORE  # passed over: statistics would show samples of its keys
        if action in _CREATES and database == "temp":
            return apsw.SQLITE_DENY  # `temp.t`: the actions for TEMP are asked for the word only
        allowed = self._allows(action, first, second)
        return apsw.SQLITE_OK if allowed else apsw.SQLITE_DENY

    def _allows(self, action: int, first: str | None, second: str | None) -> bool:
        if action in _NEVER:
            if action in (apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT):
                self._refusal = _TRANSACTION_WORDS
            return False
        if action == apsw.SQLITE_PRAGMA:
            return _allows_pragma((first or "").lower(), second, self.sets_pragmas)
        if action == apsw.SQLITE_FUNCTION:
            return (second or "").lower() not in FUNCTIONS_DENIED
        if action in (apsw.SQLITE_CREATE_VTABLE, apsw.SQLITE_DROP_VTABLE):
            return (second or "").lower() in MODULES_ALLOWED and not is_hidden(first)
        if is_hidden(first) or is_hidden(second):
            column = f".{second}" if second and action == apsw.SQLITE_READ else ""
            name = f"{first}{column}" if is_hidden(first) else second
            self._refusal = f"access to {name} is prohibited"
            return False
        return action != apsw.SQLITE_READ or (first or "").lower() not in TABLES_DENIED


def is_hidden(name: str | None) -> bool:
    """Whether a table, index, trigger or view of that name is ours alone."""
    return name is not None and name.lower().removeprefix(_INDEX_PREFIX).startswith(HIDDEN_PREFIX)


def _allows_pragma(name: str, argument: str | None, sets: bool) -> bool:
    if is_hidden(argument):
        return False
    if name in PRAGMAS_SET:
        return sets
    return name in PRAGMAS_READ and (argument is None or name in PRAGMAS_WITH_NAME)
