"""Limits of resources, each with its unit and source.

Owns  the numbers that use cases check.
Not   limits of the DNS protocol (`model.limits`) and of requests (`rest.limits`).
"""

TTL_SECONDS_MAX = 86_400  # contract "TTL and proxy"
TXT_OCTETS_PER_NAME_MAX = 8_192  # contract "Types", decoded
RRSET_OCTETS_MAX = 65_000  # one RRset fits in one DNS message over TCP (65,535) with its question and OPT
RECORD_HEAD_OCTETS = 12  # of each record in a message: compressed owner, type, class, TTL, length
TAGS_MAX = 20  # contract "DNS records" §5: of one record
TAG_NAME_CHARACTERS_MAX = 32  # contract "DNS records" §5
TAG_VALUE_CHARACTERS_MAX = 100  # contract "DNS records" §5
REFRESHED_NAMES_MAX = 500  # in one transaction, after a change of settings: about 50 ms of the writer's time
ZONES_SERVED_ANEW_MAX = 50  # in the transaction that changes their name servers; else the upkeep does it
HANGING_MAX = 500  # flattened names that are rendered again in the transaction that changes their target
ALIAS_HOPS_MAX = 32  # CNAMEs behind one another
IMPORTED_RECORDS_MAX = 50_000  # of one zone file: 50 MB while it is read
HISTORY_ITEMS_SHOWN_MAX = 20  # of one change in a list; its diff has all of them
RESTORED_ITEMS_MAX = (
    50_000  # that an undo or restore goes through, in one transaction; no less than an import
)

RULES_PER_RULESET_MAX = 1_000  # contract "Rulesets" §6: ours, plans of the hosted service have fewer
REGEXES_PER_RULESET_MAX = 1_000  # each takes up to 2 MiB at the edge; usual ones compile in 50 µs
CUSTOM_RULESETS_MAX = 100  # of one account in one phase
RULESET_OCTETS_MAX = 900_000  # the rules as JSON; with its head the ruleset is one document of the feed
RULESET_NAME_CHARACTERS_MAX = 255  # ours: one line
DESCRIPTION_CHARACTERS_MAX = 1_024  # of a ruleset or a rule
REF_CHARACTERS_MAX = 255  # ours: one line
OLDER_RULES_PER_BODY_MAX = 25  # of one body to an older interface, as the hosted service had it
OLDER_REF_CHARACTERS_MAX = 50  # as the older interfaces had it; it has to fit into a rule's own
URL_PATTERN_CHARACTERS_MAX = 1_024  # of a rate limit or lockdown, as the hosted service has it
LOCKDOWN_ITEMS_MAX = 100  # addresses of one lockdown, and pages
WAF_OVERRIDE_URLS_MAX = 100  # pages of one override of WAF packages; ours: as of a lockdown
WAF_OVERRIDE_GROUPS_MAX = 25  # of one override; ours: the rule's ref has them
AGENT_CHARACTERS_MAX = 1_024  # of a user agent rule; ours: one line
VERSIONS_KEPT_MAX = 1_000  # of one ruleset, and those that are executed by number; the oldest go first
VERSIONS_OCTETS_MAX = 64 << 20  # of one ruleset, all versions together
REFUSALS_ANSWERED_MAX = 20  # of one body: one a rule
OVERRIDE_ITEMS_MAX = 1_000  # of each list in overrides and skip
HEADERS_PER_RULE_MAX = 30  # ours: each is gone through for each request
HEADER_VALUE_CHARACTERS_MAX = 4_096  # origins refuse longer ones
URL_CHARACTERS_MAX = 4_096  # servers refuse longer ones
RESPONSE_CHARACTERS_MAX = 30_720  # a response that a rule answers
SETTING_ITEMS_MAX = 100  # of a list or map in an action's parameters
CHARACTERISTICS_MAX = 20  # ours: each is computed for each request

TOKENS_PER_USER_MAX = 50  # contract "Quotas"
TOKENS_PER_ACCOUNT_MAX = 500  # contract "Quotas"
TOKEN_NAME_CHARACTERS_MAX = 120  # contract "Tokens"
TOKEN_POLICIES_MAX = 50  # ours: each request goes through all of them
TOKEN_RESOURCES_MAX = 200  # of all policies together: every change of a token reads all tokens again
TOKEN_LINEAGE_MAX = 16  # in a line, each made by the one before: a request goes through those that bind it
TOKEN_ADDRESSES_MAX = 100  # of both lists together: each request looks at all of them

SETTINGS_PER_PATCH_MAX = 200  # of one body; more than there are settings
CUSTOM_NAMESERVERS_MAX = 25  # of one account: five sets of five
TSIG_KEYS_MAX = 200  # of one account: each process that answers DNS has all of them
TSIG_NAMES_MAX = 100  # that a key may change
# Lines of a dynamic update times the records and lines at their names: each line looks at all of its name.
# Without a limit one message held up every write for two seconds, with this one for a tenth.
UPDATE_WORK_MAX = 100_000
PACKS_MAX = 50  # of one zone, ordered: authorities issue 50 a week for one domain
CUSTOM_CERTIFICATES_MAX = 100  # of one zone, uploaded
ORIGIN_CERTIFICATES_MAX = 1_000  # of one zone, signed for origins and not revoked
ORIGIN_REVOKED_MAX = 2_000  # of one zone, that would be valid still: each is told to every edge process
VANITY_NAMESERVERS_MAX = 10  # of one zone
PEERS_MAX = 100  # of one account
TRANSFER_ACLS_MAX = 100  # of one account: each transfer is held against all of them
PEERS_PER_ZONE_MAX = 10  # each is asked in turn
ASKED_AGAIN_MAX = 500  # zones, when a peer of theirs is another one: about 25 ms of the writer's time
PEER_NAME_CHARACTERS_MAX = 100  # ours: one line
PROBLEM_CHARACTERS_MAX = 300  # of why a zone was not transferred, some of it a primary's own words
CATALOG_MEMBERS_MAX = (
    50_000  # zones that are listed at once when a catalog is made: some seconds of the writer
)
CATALOG_GROUPS_MAX = 10  # of one zone: secondaries take the first that they know
CATALOG_GROUP_CHARACTERS_MAX = 63  # ours: the name of a template
CATALOG_NAME_OCTETS_MAX = 200  # in wire form: its names have 46 octets more, and a name has 255
FOLLOWED_MAX = 20  # catalogs that one account follows
FOLLOWED_MEMBERS_MAX = 10_000  # zones that one followed catalog lists: about 20 s of the writer, in portions
FOLLOWED_GROUPS_MAX = 50  # groups with settings, of one followed catalog
FOLLOWED_REFUSED_MAX = 100  # members that are remembered with the reason why they are no zones here
FOLLOWED_GRACE_DAYS_MAX = 90  # that a zone stays which its catalog lists no longer
PURGE_ITEMS_MAX = 1_000  # of one purge; nothing is cached here yet
PROFILE_CHARACTERS_MAX = 100  # of a user's name, telephone, country, postal code
ACCOUNTS_MAX = 100  # ours: lists of accounts are read whole
MEMBERS_PER_ACCOUNT_MAX = 200  # ours: every change of a member reads all tokens again
ROLES_PER_MEMBER_MAX = 10  # more than there are
EMAIL_CHARACTERS_MAX = 90  # of a member: the schema that clients have
INVITATION_DAYS = 7  # until nobody remembers what the link in the mail was for
PASSWORD_CHARACTERS_MIN = 12  # NIST SP 800-63B asks for 8 with a second factor, and 15 without
PASSWORD_CHARACTERS_MAX = 256  # a sentence; a longer one is no safer
PASSKEYS_PER_MEMBER_MAX = 20  # ours: a few devices, each with a spare
PASSKEY_ID_OCTETS_MAX = 1_023  # WebAuthn §4, credential ID
PASSKEY_ANSWER_BYTES_MAX = 16_384  # of a browser, as JSON: without attestation they have under 2 KiB
PASSKEY_ALGORITHMS = (-7, -8, -257)  # ES256, EdDSA, RS256 (COSE): every authenticator has one of them
ACCOUNT_NAME_CHARACTERS_MAX = 100  # ours: one line
HOLD_AFTER_DAYS_MAX = 3_650  # ten years
