"""`edgecli token`: its commands by name.

Owns  the group's table.
Not   the commands. Imports click and the standard library only.
"""

from edgestead.cli.lazy import Lazy, LazyGroup

_TOKENS, _CREATE = "edgestead.cli.server.token_life", "edgestead.cli.server.token_create"

COMMANDS = {
    "list": Lazy(_TOKENS, "list_tokens", "List tokens, without their secrets."),
    "create": Lazy(_CREATE, "create", "Create a token and print its secret."),
    "get": Lazy(_TOKENS, "get", "Show one token."),
    "roll": Lazy(_TOKENS, "roll", "Give a token a new secret and print it."),
    "delete": Lazy(_TOKENS, "delete", "Delete a token."),
    "permissions": Lazy(_TOKENS, "permissions", "List what --permission can name."),
}

token = LazyGroup(
    "token",
    table=COMMANDS,
    help="""Create, list, roll and delete API tokens.

    Tokens belong to the user, or with --account to the account. A TOKEN is meant by its id or name. Server
    and credentials come from EDGE_API_BASE and EDGE_TOKEN (or EDGE_EMAIL and EDGE_KEY), or else from the
    server that runs on this machine.

    \b
      edgecli token create certbot --permission 'DNS Write' --zone example.com
      edgecli token list""",
)
