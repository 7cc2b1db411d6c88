"""The schema of the control data, step by step.

Owns  the order of the tables' migrations.
Not   running them (`store`).

A script that was released never changes; a change is a new step at the end. docs/design/0002-store.md says
how a module of `tables` is written.
"""

from edgestead.store.migrations import Migration
from edgestead.tables import (
    accounts,
    audit,
    carried,
    certificates,
    custom_nameservers,
    dated_uses,
    flattened,
    history,
    namespaces,
    openid,
    origin_certificates,
    passkeys,
    people,
    record_notes,
    records,
    rulesets,
    settings,
    signing,
    token_log,
    tokens,
    tsig_keys,
    zones,
)

MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "accounts, users and memberships", accounts.CREATE),
    Migration(2, "tokens", tokens.CREATE),
    Migration(3, "zones", zones.CREATE),
    Migration(4, "records", records.CREATE),
    Migration(5, "key-value namespaces", namespaces.CREATE),
    Migration(6, "rulesets", rulesets.CREATE),
    Migration(7, "history", history.CREATE),
    Migration(8, "comments and tags for filters", record_notes.CREATE),
    Migration(9, "settings", settings.CREATE),
    Migration(10, "custom name servers", custom_nameservers.CREATE),
    Migration(11, "changes and uses of tokens", token_log.CREATE),
    Migration(12, "flattened names", flattened.CREATE),
    Migration(13, "uses of what a date ended or replaced", dated_uses.CREATE),
    Migration(14, "floors of histories", history.FLOORS),
    Migration(15, "what flattened names hang on, by place", flattened.BY_PLACE),
    Migration(16, "settings of records as they were set", records.SETTINGS_AS_SET),
    Migration(17, "which token made which", tokens.PARENTS),
    Migration(18, "the audit log", audit.CREATE),
    Migration(19, "roles, passwords and invitations", people.CREATE),
    Migration(20, "signing keys and signed names", signing.CREATE),
    Migration(21, "passkeys", passkeys.CREATE),
    Migration(22, "TSIG keys", tsig_keys.CREATE),
    Migration(23, "rolls of signing keys", signing.ROLLS),
    Migration(24, "certificates", certificates.CREATE),
    Migration(25, "records that a zone carries as transferred", carried.CREATE),
    Migration(26, "subjects of OpenID providers", openid.CREATE),
    Migration(27, "invitations by account", people.BY_ACCOUNT),
    Migration(28, "certificates for origins", origin_certificates.CREATE),
)
