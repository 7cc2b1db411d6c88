"""`edgecli kv namespace`: create, list, rename and delete.

Owns  arguments, options and output of the four commands; titles; the configuration snippet.
Not   requests as such. Imports click and the standard library only.
"""

import re
from typing import Any

import click

from edgestead.cli.failure import Failed, confirmed, warn
from edgestead.cli.http import Api, Refused, segment
from edgestead.cli.kv.namespace_target import namespace_id_of, remote
from edgestead.cli.kv.options import ENV_OPTIONS, NAMESPACE, YES, KvCommand, Where, switch
from edgestead.cli.kv.project import Project, find_project
from edgestead.cli.kv.remote import namespaces_path
from edgestead.cli.target import whole_list

DEFAULT_PROJECT_NAME = "worker"
TITLE_TAKEN = 10014

_env, _config = ENV_OPTIONS


@click.command("create", cls=KvCommand)
@click.argument("namespace")
@_env
@_config
@switch("preview", "--preview", help="Create a preview namespace: the snippet holds a preview_id.")
@click.option("--binding", metavar="BINDING", help="Binding in the snippet. Default: made from NAMESPACE.")
@switch("update_config", "--update-config", help="Write the snippet into the configuration file.")
def namespace_create(
    namespace: str,
    env: str | None,
    config: str | None,
    preview: bool,
    binding: str | None,
    update_config: bool,
) -> None:
    """Create a namespace and print what to add to the configuration.

    Its title is the project's name, the environment if there is one, NAMESPACE, and _preview for a preview.

    \b
      edgecli kv namespace create TEXTS
    """
    from edgestead.cli.kv import project_edit

    project = find_project(config)
    if not project.has(env) and not update_config:
        warn(f'There is no environment "{env}" in {project.path}: add it with the snippet.')
    elif project.path is not None:
        project.namespaces(env)  # what cannot be written to is noticed before anything is made
    if update_config and project.path is None:
        raise Failed("--update-config needs a configuration file, and there is none.")
    binding = binding or _binding_from(namespace)
    member = "preview_id" if preview else "id"
    if update_config:
        project_edit.check_can_add(project, env, binding, member)
    title = _title(project, namespace, env, preview)
    with remote(project, env if project.has(env) else None) as (api, account):
        click.echo(f'Creating namespace with title "{title}"')
        id_ = _create(api, account, title)
    click.echo("Success!")
    addition = project_edit.Addition(env, binding, member, id_)
    if update_config:
        assert project.path is not None
        project_edit.write(project, addition)
        click.echo(f"{member} of binding {binding} is written to {project.path}.")
    else:
        click.echo(project_edit.snippet(project, addition))


def _create(api: Api, account: str, title: str) -> str:
    try:
        answer = api.call("POST", namespaces_path(account), json_body={"title": title}, repeat=False)
    except Refused as refusal:
        if TITLE_TAKEN in refusal.codes:
            raise Failed(
                f'There is a namespace with the title "{title}" already [code: {TITLE_TAKEN}].',
                "`edgecli kv namespace list` shows its id.",
            ) from None
        raise
    return str(answer["result"]["id"])


def _title(project: Project, namespace: str, env: str | None, preview: bool) -> str:
    name = project.name
    if name is None:
        name = DEFAULT_PROJECT_NAME
        warn(f'The configuration gives no name for the project; the title begins with "{name}".')
    parts = [name, env, namespace] if env else [name, namespace]
    return "-".join(part for part in parts if part) + ("_preview" if preview else "")


def _binding_from(namespace: str) -> str:
    """A name that code can use: `my-kv store` becomes my_kv_store."""
    name = re.sub(r"[^0-9A-Za-z_]", "", re.sub(r"[ -]", "_", namespace))
    name = re.sub(r"_+", "_", name)
    if not name.strip("_"):
        return "KV"
    return f"_{name}" if name[0].isdigit() else name


@click.command("list", cls=KvCommand)
@_env
@_config
def namespace_list(env: str | None, config: str | None) -> None:
    """Print the account's namespaces as a JSON array of objects with id and title.

    \b
      edgecli kv namespace list
    """
    from edgestead.cli.output import echo_array

    with remote(find_project(config), env) as (api, account):
        echo_array({"id": found["id"], "title": found["title"]} for found in _namespaces(api, account))


def _namespaces(api: Api, account: str) -> list[dict[str, Any]]:
    query = {"order": "title", "direction": "asc"}
    return whole_list(api, namespaces_path(account), query)


@click.command("rename", cls=KvCommand)
@click.argument("old_name", required=False)
@click.option("--namespace-id", metavar="ID", help="Namespace by its id, instead of OLD_NAME.")
@click.option("--new-name", metavar="TITLE", required=True, help="The new title.")
@_env
@_config
def namespace_rename(
    old_name: str | None, namespace_id: str | None, new_name: str, env: str | None, config: str | None
) -> None:
    """Give a namespace the title --new-name. OLD_NAME is its title until now.

    \b
      edgecli kv namespace rename TEXTS --new-name WORDS
    """
    if (old_name is None) == (namespace_id is None):
        raise click.UsageError("Exactly one of OLD_NAME and --namespace-id is needed.")
    with remote(find_project(config), env) as (api, account):
        id_ = namespace_id or _id_of_title(api, account, old_name)
        path = f"{namespaces_path(account)}/{segment(id_)}"
        api.call("PUT", path, json_body={"title": new_name})
    click.echo(f'Namespace {id_} has the title "{new_name}" now.')


def _id_of_title(api: Api, account: str, title: str | None) -> str:
    for found in _namespaces(api, account):
        if found["title"] == title:
            return str(found["id"])
    raise Failed(f'There is no namespace with the title "{title}".', "`edgecli kv namespace list` shows all.")


@click.command("delete", cls=KvCommand)
@NAMESPACE
@YES
def namespace_delete(where: Where, yes: bool) -> None:
    """Delete a namespace with all its keys, after a y/n question.

    \b
      edgecli kv namespace delete --binding TEXTS --yes
    """
    project = find_project(where.config)
    id_ = namespace_id_of(project, where)
    with remote(project, where.env) as (api, account):
        if not confirmed(f"Delete namespace {id_} and all its keys?", yes=yes):
            return
        click.echo(f"Deleting namespace {id_}.")
        api.call("DELETE", f"{namespaces_path(account)}/{segment(id_)}", repeat=False)
    click.echo(f"Deleted namespace {id_}.")
