"""Limits of the REST face, each with its unit and source.

Owns  the numbers.
Not   limits of resources (`model.limits`, `usecases`); of connections and heads (`http1`).
"""

BODY_BYTES_MAX = 1_048_576  # a route may name another
BATCH_BODY_BYTES_MAX = 4_194_304  # 3,500 changes of 1,198 bytes
TOKEN_BODY_BYTES_MAX = 65_536  # 200 resources in both spellings, and then some
BODY_SECONDS_MAX = 30.0  # from the end of the headers to the end of the body
JSON_DEPTH_MAX = 32  # arrays and objects inside one another; the deepest shape of ours is 7
JSON_VALUES_MAX = 200_000  # of a body: 3,500 changes with 20 tags each; 25 MB when each is dear
TWINS_BODY_BYTES_MAX = 65_536  # a longer body is not searched for members that stand twice: over 2 ms
QUERY_PARAMETERS_MAX = 100  # a list has fewer filters; each is looked at
QUERY_BYTES_KEPT_MAX = 512  # the page of a longer query is not kept
PAGE_SIZE_DEFAULT = 20  # contract "Paging"
PAGE_SIZE_MAX = 1_000  # contract "Key-value store": clients ask for 1,000
RECORDS_PAGE_SIZE_DEFAULT = 100  # contract "List query"
RECORDS_PAGE_SIZE_MAX = 5_000_000  # contract "List query"
RULESETS_PAGE_SIZE_DEFAULT = 50  # more than there are phases: one page is all
EVENTS_PAGE_SIZE_DEFAULT = 100  # about what somebody reads at a time
PAGE_NUMBER_MAX = 1_000_000_000_000  # further pages are as empty as this one
ROWS_READ_INLINE_MAX = 500  # a longer list is read off the event loop
ZONES_READ_INLINE_MAX = 100  # the same of zones, of which each is several reads: 15 µs
BODY_OCTETS_READ_INLINE_MAX = 16_384  # a longer body that has to be compiled is read off the event loop
LOG_LINES_WAITING_MAX = 10_000  # further lines are dropped and counted
UPLOAD_SECONDS_MAX = 600.0  # a body that is streamed: 25 MiB at 350 kbit/s
UPLOAD_IDLE_SECONDS_MAX = 30.0  # between two portions of it
FORM_PARTS_MAX = 16  # a value has two: itself and its metadata
FORM_PART_HEAD_BYTES_MAX = 8_192  # headers of one part: a name and a type
FORM_OVERHEAD_BYTES_MAX = 65_536  # of a form around its value: boundaries, heads, metadata
KEYS_READ_INLINE_MAX = 100  # a longer listing of keys is read off the event loop
KEYS_BODY_BYTES_MAX = 31_457_280  # 10,000 keys of 512 bytes, each byte written as an escape
AUDIT_PAGE_SIZE_DEFAULT = 100  # as clients of such logs expect
HISTORY_PAGE_SIZE_MAX = 100  # changes, or records of one change, on a page
SEQUENCE_DIGITS_MAX = 18  # fits in 64 bits
ZONE_FILE_BYTES_MAX = 4_194_304  # the hosted service takes 262,144
