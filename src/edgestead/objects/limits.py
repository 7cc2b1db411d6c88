"""The room's limits, each with its unit and source.

Owns  the numbers.
Not   checking: the module that meets the value does that.
"""

from edgestead.model.budgets import table

KEY_BYTES_MAX = 2_048  # spec "Limits": object storage key, as UTF-8
VALUE_BYTES_MAX = 131_072  # spec "Limits": object storage value, encoded
PAIRS_MAX = 128  # spec "Limits": keys or pairs of one get, put or delete

NESTED_MAX = 64  # blocks and transactions inside one another
BLOCK_SECONDS_MAX = 30.0  # one block_concurrency_while
START_SECONDS_MAX = 30.0  # one on_start, while which every call of the object waits
MESSAGE_BYTES_MAX = 32 * 1024 * 1024  # arguments or result of one call, encoded
CALLS_WAITING_MAX = table.OBJECT_CALLS.limit  # calls that one object has not answered yet
SMALL_BYTES_MAX = 4 * 1024  # of arguments: they are not counted by their bytes, but as a call
IDLE_SECONDS = 10.0  # an object without calls leaves memory after this

CACHE_BYTES_MAX = 2 * 1024 * 1024  # values that one object keeps in memory
UNFLUSHED_KEYS_MAX = 1_024  # keys that are in the log and not in the database yet
UNFLUSHED_BYTES_MAX = 1024 * 1024  # the same in bytes: with the log, what a start has to go through
PAGE_CACHE_KIB_MAX = 2_000  # of one database
CHECKPOINT_FRAMES = 1_000  # pages in the write-ahead log before they go to the database file
DATABASE_PAGES_MAX = 10 * 1024 * 1024 * 1024 // 4_096  # 10 GiB an object

STATEMENT_SECONDS_MAX = 10.0  # one SQL statement, between two rows
STATEMENT_CHECK_OPS = 100_000  # virtual machine steps between two looks at the clock
SPLITS_MAX = 256  # query texts whose parts are remembered

# What the reference runtime allows a connection.
SQL_BYTES_MAX = 100_000
SQL_STRING_BYTES_MAX = 4 * 1024 * 1024  # one text or blob
SQL_COLUMNS_MAX = 100  # of a table or a result
SQL_EXPRESSION_DEPTH_MAX = 100  # operators inside one another
SQL_COMPOUND_MAX = 5  # SELECTs joined by UNION and the like
SQL_OPS_MAX = 25_000  # operations of one compiled statement
SQL_ARGUMENTS_MAX = 127  # of one function
SQL_LIKE_BYTES_MAX = 50  # a pattern of LIKE or GLOB
SQL_VARIABLES_MAX = 100  # ? in one statement
SQL_TRIGGER_DEPTH_MAX = 10  # triggers that start one another
