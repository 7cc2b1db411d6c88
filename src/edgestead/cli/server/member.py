"""`edgecli member` and `edgecli account`: who belongs to an account, and accounts.

Owns  arguments, options and output of the commands.
Not   what a role may do. Imports click and the standard library only.
"""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from edgestead.cli.dry_run import DRY_RUN
from edgestead.cli.failure import Failed, confirmed, listed
from edgestead.cli.table import show_lines, show_list
from edgestead.cli.target import JSON, YES, Command, Json, api, is_id, whole_list

if TYPE_CHECKING:
    from edgestead.cli.http import Api

_ROLES = click.option(
    "names",
    "--role",
    metavar="ROLE",
    multiple=True,
    required=True,
    help="What they may do, by name or a part of it: DNS, 'read only'; may be repeated.",
)
_MEMBER = click.argument("member", metavar="EMAIL")


@click.command("list", cls=Command)
@JSON
def list_members(as_json: bool) -> None:
    """List the members of the account with their roles.

    \b
      edgecli member list --json
    """
    server = api()
    show_list(
        whole_list(server, _path(server), {}), ("e-mail", "status", "roles", "id"), _row, as_json=as_json
    )


def _row(member: Json) -> tuple[object, ...]:
    return (
        member["email"],
        member["status"],
        ", ".join(role["name"] for role in member["roles"]),
        member["id"],
    )


@click.command("roles", cls=Command)
@JSON
def roles(as_json: bool) -> None:
    """List the roles that a member can have.

    \b
      edgecli member roles
    """
    server = api()
    found = whole_list(server, _path(server, "roles"), {})
    show_list(
        found, ("role", "what it may do"), lambda one: (one["name"], one["description"]), as_json=as_json
    )


@click.command("invite", cls=Command)
@_MEMBER
@_ROLES
@DRY_RUN
@JSON
def invite(member: str, names: tuple[str, ...], as_json: bool) -> None:
    """Invite EMAIL to the account, and print their link.

    Somebody new sets a password with it. Who is a member of another account signs in, and gives the code
    behind `code=` on the page *You*. Only the link is printed on stdout. It works once, within seven days;
    nothing is sent to them.

    \b
      edgecli member invite ann@example.com --role DNS
    """
    server = api()
    body = {"email": member, "roles": _role_ids(server, names)}
    made = server.call("POST", _path(server), json_body=body, repeat=False)["result"]
    _show_link(server, made, as_json=as_json)


@click.command("link", cls=Command)
@_MEMBER
@DRY_RUN
@JSON
def link(member: str, as_json: bool) -> None:
    """Print another link for EMAIL, who lost theirs or forgot the password. The older one is dead.

    \b
      edgecli member link ann@example.com
    """
    server = api()
    path = _path(server, "members", _member_of(server, member)["id"], "invitation")
    _show_link(server, server.call("POST", path, repeat=False)["result"], as_json=as_json)


def _show_link(server: "Api", made: Json, *, as_json: bool) -> None:
    if not as_json:
        click.echo(f"{made['email']} joins with this link, once, within seven days:", err=True)
    base = urlsplit(server.source.api_base)
    show_lines(made, f"{base.scheme}://{base.netloc}/ui/invite?code={made.get('code', '')}", as_json=as_json)


@click.command("set", cls=Command)
@_MEMBER
@_ROLES
@DRY_RUN
@JSON
def set_roles(member: str, names: tuple[str, ...], as_json: bool) -> None:
    """Give EMAIL these roles, and no other. Their sessions and tokens follow at once.

    \b
      edgecli member set ann@example.com --role 'read only'
    """
    server = api()
    path = _path(server, "members", _member_of(server, member)["id"])
    done = server.call("PUT", path, json_body={"roles": _role_ids(server, names)})["result"]
    show_lines(
        done, f"{done['email']}: {', '.join(role['name'] for role in done['roles'])}.", as_json=as_json
    )


@click.command("remove", cls=Command)
@_MEMBER
@YES
@DRY_RUN
@JSON
def remove(member: str, yes: bool, as_json: bool) -> None:
    """Remove EMAIL from the account, after a y/n question. Their sessions and tokens are dead then.

    \b
      edgecli member remove ann@example.com --yes
    """
    server = api()
    found = _member_of(server, member)
    question = f"Remove {found['email']}, and every token that they made?"
    if confirmed(question, yes=yes, verb="remove", quiet=as_json):
        server.call("DELETE", _path(server, "members", found["id"]), repeat=False)
        show_lines(found, f"{found['email']} is removed.", as_json=as_json)


@click.command("list", cls=Command)
@JSON
def list_accounts(as_json: bool) -> None:
    """List the accounts that these credentials see. EDGE_ACCOUNT_ID chooses one.

    \b
      edgecli account list
    """
    show_list(
        whole_list(api(), "/accounts", {}),
        ("name", "id"),
        lambda one: (one["name"], one["id"]),
        as_json=as_json,
    )


@click.command("create", cls=Command)
@click.argument("name", metavar="NAME")
@DRY_RUN
@JSON
def create_account(name: str, as_json: bool) -> None:
    """Create another account, with zones, rules, values, tokens and members of its own.

    It takes credentials that may do everything on the server. Objects belong to the first account.

    \b
      edgecli account create 'Second account'
    """
    made = api().call("POST", "/accounts", json_body={"name": name}, repeat=False)["result"]
    show_lines(made, f"Account {made['name']} has the id {made['id']}.", as_json=as_json)


def _path(server: "Api", *parts: str) -> str:
    from edgestead.cli.http import account_of

    return "/".join(("/accounts", account_of(server, None), *(parts or ("members",))))


def _member_of(server: "Api", member: str) -> Json:
    """By e-mail address or id. Raises Failed."""
    for one in whole_list(server, _path(server), {}):
        if one["email"].lower() == member.lower() or (is_id(member) and one["id"] == member):
            return one
    raise Failed(f"There is no member {member}.", "`edgecli member list` shows them.")


def _role_ids(server: "Api", names: tuple[str, ...]) -> list[str]:
    """Each by its name, or a part that one alone has. Raises Failed."""
    known = {one["name"]: one["id"] for one in whole_list(server, _path(server, "roles"), {})}
    found = []
    for name in names:
        exact = [one for one in known if one.casefold() == name.casefold()]
        fits = exact or [one for one in known if name.casefold() in one.casefold()]
        if len(fits) != 1:
            raise Failed(
                f"{name!r} is no role." if not fits else f"{name!r} may be {listed(fits)}.",
                f"There are: {listed(known, most=len(known))}.",
            )
        found.append(known[fits[0]])
    return found
