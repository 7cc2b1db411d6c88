"""`edgecli member` and `edgecli account`: their commands by name.

Owns  the groups' tables.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_MEMBER = "edgestead.cli.server.member"

COMMANDS = {
    "list": Lazy(_MEMBER, "list_members", "List the members with their roles."),
    "roles": Lazy(_MEMBER, "roles", "List the roles that a member can have."),
    "invite": Lazy(_MEMBER, "invite", "Invite somebody, and print their link."),
    "link": Lazy(_MEMBER, "link", "Print another link for a member."),
    "set": Lazy(_MEMBER, "set_roles", "Give a member other roles."),
    "remove": Lazy(_MEMBER, "remove", "Remove a member, with sessions and tokens."),
}
ACCOUNT_COMMANDS = {
    "list": Lazy(_MEMBER, "list_accounts", "List the accounts."),
    "create": Lazy(_MEMBER, "create_account", "Create another account."),
}

member = LazyGroup(
    "member",
    table=COMMANDS,
    help="""Invite people to the account, and say what they may do.

    A member signs in to the dashboard with an e-mail address and a password.

    \b
      edgecli member invite ann@example.com --role DNS
      edgecli member set ann@example.com --role editor
      edgecli member remove ann@example.com""",
)
account = LazyGroup(
    "account",
    table=ACCOUNT_COMMANDS,
    help="""Accounts of the server: each has zones, values, tokens and members of its own.

    EDGE_ACCOUNT_ID says which account the other commands mean.""",
)
