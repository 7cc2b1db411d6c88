"""`edgecli token list|get|roll|delete|permissions`.

Owns  arguments, options and output of the five commands; which token a TOKEN means.
Not   making one (`cli.server.token_create`). Imports click and the standard library only.
"""

from typing import TYPE_CHECKING

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, confirmed, listed
from edgestead.cli.table import show_lines, show_list, show_one
from edgestead.cli.target import JSON, YES, Command, Json, api, is_id, whole_list

if TYPE_CHECKING:
    from edgestead.cli.http import Api

ACCOUNT = click.option("--account", is_flag=True, help="The account's tokens, not the user's.")
TOKEN = click.argument("token", metavar="TOKEN")

_HEADS = ("name", "id", "status", "expires", "may", "made by")
_SHOWN_MAX = 3  # permission groups in a row of the list


@click.command("list", cls=Command)
@ACCOUNT
@JSON
def list_tokens(account: bool, as_json: bool) -> None:
    """List tokens, without their secrets. `made by` is the token that made one, if any is left.

    \b
      edgecli token list --json
    """
    server = api()
    asked = {"include_expired": "true", "lineage": "true"}
    found = whole_list(server, tokens_path(server, account), asked)
    names = {one["id"]: one["name"] for one in found}
    show_list(found, _HEADS, lambda one: (*_row(one), _maker(one, names)), as_json=as_json)


@click.command("get", cls=Command)
@TOKEN
@ACCOUNT
@JSON
def get(token: str, account: bool, as_json: bool) -> None:
    """Show a token and its policies, without its secret.

    \b
      edgecli token get certbot
    """
    server = api()
    found = _token_of(server, tokens_path(server, account), token)
    show_one(found, _members, as_json=as_json)


@click.command("roll", cls=Command)
@TOKEN
@ACCOUNT
@YES
@DRY_RUN
@JSON
def roll(token: str, account: bool, yes: bool, as_json: bool) -> None:
    """Give a token a new secret and print it, after a y/n question. The old one stops working at once.

    \b
      edgecli token roll certbot --yes
    """
    server = api()
    path = tokens_path(server, account)
    found = _token_of(server, path, token)
    question = f"The secret of token {found['name']} stops working at once. Renew it?"
    if confirmed(question, yes=yes, verb="revoke", quiet=True):
        value = server.call("PUT", f"{path}/{found['id']}/value", json_body={}, repeat=False)["result"]
        show_lines({"id": found["id"], "value": value}, value, as_json=as_json)


@click.command("delete", cls=Command)
@TOKEN
@ACCOUNT
@click.option(
    "--with-successors", is_flag=True, help="Also every token that it made, and that those made, at once."
)
@YES
@DRY_RUN
@JSON
def delete(token: str, account: bool, with_successors: bool, yes: bool, as_json: bool) -> None:
    """Delete a token, after a y/n question. Its secret stops working at once.

    Tokens that it made stay, and never get more than they had; with --with-successors they go, too.

    \b
      edgecli token delete certbot --with-successors
    """
    server = api()
    path = tokens_path(server, account)
    found = _token_of(server, path, token)
    below = " and every token that comes from it" if with_successors else ""
    if confirmed(f"Delete token {found['name']}{below}?", yes=yes, quiet=as_json):
        query = {"with_successors": "true"} if with_successors else {}
        done = server.call("DELETE", f"{path}/{found['id']}", query=query, repeat=False)["result"]
        gone = len(done.get("successors", ()))
        more = f", and {gone} that came from it" if gone else ""
        show_lines(done, f"Deleted token {found['name']}{more}.", as_json=as_json)


@click.command("permissions", cls=Command)
@ACCOUNT
@JSON
def permissions(account: bool, as_json: bool) -> None:
    """List the permission groups that `edgecli token create --permission` can name.

    \b
      edgecli token permissions
    """
    server = api()
    found = permission_groups(server, tokens_path(server, account))
    heads = ("name", "reaches", "id")
    show_list(found, heads, lambda one: (one["name"], scope_of(one), one["id"]), as_json=as_json)


def tokens_path(server: "Api", account: bool) -> str:
    """The user's tokens, or those of the credentials' account."""
    from edgestead.cli.http import account_of, segment

    return f"/accounts/{segment(account_of(server, None))}/tokens" if account else "/user/tokens"


def permission_groups(server: "Api", path: str) -> list[Json]:
    found: list[Json] = server.call("GET", f"{path}/permission_groups")["result"]
    return found


def scope_of(group: Json) -> str:
    """`zone`, `account` or `user`: the kind of resource that a permission group is about."""
    return str(group["scopes"][0]).rpartition(".")[2]


def _token_of(server: "Api", path: str, token: str) -> Json:
    """Raises Failed: no such token, or several of this name."""
    if is_id(token):
        one: Json = server.call("GET", f"{path}/{token}")["result"]
        return one
    found = [one for one in whole_list(server, path, {"include_expired": "true"}) if one["name"] == token]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failed(f"There is no token {token}.", "`edgecli token list` shows all.")
    raise Failed(
        f"{len(found)} tokens have this name. Choose one by its id:", *(f"  {one['id']}" for one in found)
    )


def _row(token: Json) -> tuple[object, ...]:
    return (token["name"], token["id"], token["status"], token.get("expires_on"), _may(token))


def _maker(token: Json, names: dict[str, str]) -> str | None:
    """By name, where it is in the same list."""
    parent_id = token.get("parent_id")
    return None if parent_id is None else names.get(parent_id, parent_id)


def _members(token: Json) -> list[tuple[str, object]]:
    names = ("name", "id", "status", "issued_on", "modified_on", "not_before", "expires_on")
    return [*((name, token.get(name)) for name in names), *_policies(token)]


def _may(token: Json) -> str:
    allowed = (policy for policy in token["policies"] if policy["effect"] == "allow")
    return listed((group["name"] for one in allowed for group in one["permission_groups"]), most=_SHOWN_MAX)


def _policies(token: Json) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for policy in token["policies"]:
        found += [
            (policy["effect"], [group["name"] for group in policy["permission_groups"]]),
            ("  on", [_resource(*item) for item in policy["resources"].items()]),
        ]
    for addresses in (token.get("condition") or {}).values():  # `request_ip`, or `request.ip`
        found += [(f"address {member}", networks) for member, networks in addresses.items()]
    return found


def _resource(name: str, value: object) -> str:
    """`zone ID`, or `account ID: zone *`."""
    short = " ".join(name.split(".")[-2:])
    if isinstance(value, dict):
        return f"{short}: " + ", ".join(_resource(*item) for item in value.items())
    return short
