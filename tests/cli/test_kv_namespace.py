"""edgecli kv namespace: titles, snippets, the configuration file, and what is asked before deleting."""

import json
import tomllib

import pytest

from edgestead.cli.kv import jsonc

ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def ids(edgecli):
    """The account's namespaces: title → id."""
    return lambda: {found["title"]: found["id"] for found in listed(edgecli)}


def listed(edgecli):
    return json.loads(edgecli("kv", "namespace", "list").out)


def unique(request):
    return request.node.name.replace("[", "-").replace("]", "")[:100]


# Create


def test_a_created_namespace_is_told_with_a_snippet_that_can_be_pasted(edgecli, ids, project):
    (project / "edge.toml").write_text('name = "proj"\n')

    done = edgecli("kv", "namespace", "create", "NEW")

    id_ = ids()["proj-NEW"]
    assert done == (
        0,
        'Creating namespace with title "proj-NEW"\n'
        "Success!\n"
        "Add this to the kv_namespaces array (edge.toml):\n"
        f'[[kv_namespaces]]\nbinding = "NEW"\nid = "{id_}"\n',
        "",
        done.bytes,
    )


TITLES = (
    ((), "NAME"),
    (("--preview",), "NAME_preview"),
    (("--env", "prod"), "prod-NAME"),
    (("--env", "prod", "--preview", "true"), "prod-NAME_preview"),
    (("--preview=false",), "NAME"),
)


@pytest.mark.parametrize(("options", "title"), TITLES)
def test_a_title_is_project_environment_name_and_preview(edgecli, ids, project, options, title):
    name = f"t{len(ids())}"
    (project / "edge.toml").write_text('name = "proj"\n[env.prod]\n')

    edgecli("kv", "namespace", "create", name, *options)

    assert f"proj-{title.replace('NAME', name)}" in ids()


def test_without_a_project_name_the_title_begins_with_worker_and_says_so_once(edgecli, ids):
    done = edgecli("kv", "namespace", "create", "nameless")

    assert "worker-nameless" in ids()
    assert done.err.count("Warning: ") == done.err.count('"worker"') == 1


SNIPPETS = (
    ("edge.toml", 'name = "s1"\n', (), '[[kv_namespaces]]\nbinding = "N"\nid = "ID"'),
    ("edge.toml", 'name = "s2"\n', ("--preview",), '[[kv_namespaces]]\nbinding = "N"\npreview_id = "ID"'),
    (
        "edge.toml",
        'name = "s3"\n[env.p]\n',
        ("--env", "p"),
        '[[env.p.kv_namespaces]]\nbinding = "N"\nid = "ID"',
    ),
    ("edge.toml", 'name = "s4"\nkv_namespaces = []\n', (), '{ binding = "N", id = "ID" },'),
    (
        "edge.toml",
        f'name = "s5"\n[[kv_namespaces]]\nbinding = "N"\nid = "{ID}"\n',
        ("--preview",),
        'preview_id = "ID"',
    ),
    (
        "edge.json",
        '{"name": "s6"}',
        (),
        '  "kv_namespaces": [\n    {\n      "binding": "N",\n      "id": "ID"\n    }\n  ]',
    ),
    (
        "edge.jsonc",
        f'{{"name": "s7", "kv_namespaces": [{{"binding": "M", "id": "{ID}"}}]}}',
        (),
        '{\n  "binding": "N",\n  "id": "ID"\n}',
    ),
    (
        "wrangler.toml",
        'name = "s8"\n[env."a b"]\n',
        ("--env", "a b"),
        '[[env."a b".kv_namespaces]]\nbinding = "N"\nid = "ID"',
    ),
)


@pytest.mark.parametrize(("file", "text", "options", "snippet"), SNIPPETS)
def test_a_snippet_has_the_form_that_the_file_needs(edgecli, ids, project, file, text, options, snippet):
    (project / file).write_text(text)
    before = ids()

    done = edgecli("kv", "namespace", "create", "N", *options)

    ((_, id_),) = ids().items() - before.items()
    assert done.out.endswith("):\n" + snippet.replace("ID", id_) + "\n")


def test_a_pasted_toml_snippet_is_what_the_other_commands_read(edgecli, project):
    file = project / "edge.toml"
    file.write_text('name = "pasted"\n[env.prod]\n')
    for options in ((), ("--env", "prod")):
        snippet = edgecli("kv", "namespace", "create", "P", *options).out.partition("):\n")[2]
        file.write_text(file.read_text() + snippet)

    assert edgecli("kv", "key", "put", "k", "v", "--binding", "P").code == 0
    assert edgecli("kv", "key", "get", "k", "--binding", "P", "--env", "prod").code == 1
    assert edgecli("kv", "key", "get", "k", "--binding", "P").out == "v"


BINDINGS = (
    ("my-kv store", "my_kv_store"),
    ("a--b", "a_b"),
    ("1st", "_1st"),
    ("é!", "KV"),
    ("a.b", "ab"),
)


@pytest.mark.parametrize(("name", "binding"), BINDINGS)
def test_a_binding_is_a_name_that_code_can_use(edgecli, project, name, binding):
    (project / "edge.toml").write_text('name = "bindings"\n')

    assert f'binding = "{binding}"\n' in edgecli("kv", "namespace", "create", name).out


def test_a_title_that_is_taken_fails_with_the_way_to_find_it(edgecli, namespace_id, request):
    done = edgecli("kv", "namespace", "create", request.node.name)

    assert done.code == 1
    assert f'There is a namespace with the title "worker-{request.node.name}" already' in done.err
    assert "edgecli kv namespace list" in done.err


@pytest.mark.parametrize(("file", "text"), [("edge.toml", 'name = "N"\n'), ("edge.json", '{"name": "N"}')])
def test_an_environment_that_is_not_there_is_a_warning(edgecli, ids, project, file, text):
    name = f"{file[5:]}env"
    (project / file).write_text(text.replace("N", name))

    done = edgecli("kv", "namespace", "create", "N", "--env", "prod")

    assert done.code == 0
    assert 'Warning: There is no environment "prod"' in done.err
    assert f"{name}-prod-N" in ids()
    snippet = done.out.partition(":\n")[2]
    if file == "edge.toml":
        (project / file).write_text(text.replace("N", name) + snippet)
        assert edgecli("kv", "key", "list", "--binding", "N", "--env", "prod").out.strip() == "[]"


def test_an_environment_that_is_not_there_is_not_written_to(edgecli, ids, project):
    (project / "edge.toml").write_text('name = "noenv"\n')

    done = edgecli("kv", "namespace", "create", "N", "--env", "prod", "--update-config")

    assert (done.code, done.out) == (1, "")
    assert 'There is no environment "prod"' in done.err
    assert not any("noenv" in title for title in ids())


# --update-config

EDITS = (
    (
        "edge.toml",
        'name = "e1" # mine\n\n[vars] # theirs\nx = 1\n',
        (),
        'name = "e1" # mine\n\n[vars] # theirs\nx = 1\n[[kv_namespaces]]\nbinding = "N"\nid = "ID"\n',
    ),
    (
        "edge.toml",
        '# top\n[[kv_namespaces]] # one\nbinding = "M"\nid = "x"\n\n[vars]\nx = 1 # kept\n',
        (),
        '# top\n[[kv_namespaces]] # one\nbinding = "M"\nid = "x"\n\n'
        '[[kv_namespaces]]\nbinding = "N"\nid = "ID"\n[vars]\nx = 1 # kept\n',
    ),
    (
        "edge.toml",
        'kv_namespaces = [{ binding = "N", id = "x" }] # kept\n',
        ("--preview",),
        'kv_namespaces = [{ binding = "N", id = "x", preview_id = "ID"}] # kept\n',
    ),
    (
        "edge.json",
        '{\n  "name": "e4"\n}\n',
        (),
        '{\n  "name": "e4",\n  "kv_namespaces": [\n    {\n'
        '      "binding": "N",\n      "id": "ID"\n    }\n  ]\n}\n',
    ),
    (
        "edge.jsonc",
        '{\n  // why\n  "kv_namespaces": [\n    {"binding": "M", "id": "x"}, // M\n  ], /* end */\n}\n',
        (),
        '{\n  // why\n  "kv_namespaces": [\n    {"binding": "M", "id": "x"}, // M\n'
        '    {"binding": "N", "id": "ID"}\n  ], /* end */\n}\n',
    ),
    (
        "edge.jsonc",
        '{"kv_namespaces": [{"binding": "N", "id": "x" /* id */}]}',
        ("--preview",),
        '{"kv_namespaces": [{"binding": "N", "id": "x", "preview_id": "ID" /* id */}]}',
    ),
    (
        "edge.jsonc",
        '{"kv_namespaces": []}',
        (),
        '{"kv_namespaces": [{"binding": "N", "id": "ID"}]}',
    ),
    (
        "edge.json",
        '{"env": {"p": {}}, "kv_namespaces": []}',
        ("--env", "p"),
        '{"env": {"p": {"kv_namespaces": [\n  {\n    "binding": "N",\n    "id": "ID"\n  }\n]}}, '
        '"kv_namespaces": []}',
    ),
)


@pytest.mark.parametrize(("file", "old", "options", "new"), EDITS)
def test_the_configuration_is_changed_and_everything_else_in_it_stays(
    edgecli, ids, project, request, file, old, options, new
):
    path = project / file
    path.write_text(old)
    path.chmod(0o640)
    before = ids()

    # A name of the test's own: the titles of all these projects live in one account.
    name = f"n{len(before)}"
    done = edgecli("kv", "namespace", "create", name, "--binding", "N", "--update-config", *options)

    ((_, id_),) = ids().items() - before.items()
    assert done.code == 0, done.err
    assert path.read_text() == new.replace("ID", id_)
    assert path.stat().st_mode & 0o777 == 0o640
    (tomllib.loads if file.endswith(".toml") else jsonc.loads)(path.read_text())
    assert [found.name for found in project.iterdir()] == [file]


@pytest.mark.parametrize(
    ("file", "old"),
    [
        ("edge.toml", "# top\r\n[vars]\r\nx = 1\r\n"),
        ("edge.jsonc", '{\r\n  // top\r\n  "vars": {}\r\n}\r\n'),
        ("edge.toml", "\ufeff# top\n[vars]\nx = 1\n"),
        ("edge.json", '\ufeff{\n  "vars": {}\n}\n'),
    ],
)
def test_line_ends_and_byte_order_mark_stay(edgecli, ids, project, file, old):
    (project / file).write_bytes(old.encode())

    done = edgecli("kv", "namespace", "create", f"n{len(ids())}", "--binding", "N", "--update-config")

    assert done.code == 0, done.err
    new = (project / file).read_bytes().decode()
    assert new.startswith("\ufeff") == old.startswith("\ufeff")
    assert new.count("\r\n") == ("\r" in old) * new.count("\n")
    assert edgecli("kv", "key", "list", "--binding", "N").out == "[]\n"


def test_a_member_that_is_there_is_not_replaced_and_nothing_is_made(edgecli, ids, project):
    text = '[[kv_namespaces]]\nbinding = "N"\nid = "x"\n'
    (project / "edge.toml").write_text(text)
    before = ids()

    done = edgecli("kv", "namespace", "create", "N", "--update-config")

    assert done.code == 1
    assert "has the id x already" in done.err
    assert ids() == before
    assert (project / "edge.toml").read_text() == text


def test_without_a_configuration_there_is_nothing_to_update(edgecli, ids):
    before = ids()

    assert edgecli("kv", "namespace", "create", "N", "--update-config").code == 1
    assert ids() == before


# List and rename


def test_a_list_has_exactly_id_and_title(edgecli, namespace_id, request):
    done = edgecli("kv", "namespace", "list")

    assert (done.code, done.err) == (0, "")
    assert {"id": namespace_id, "title": f"worker-{request.node.name}"} in json.loads(done.out)
    assert done.out.startswith('[\n  {\n    "id": "')
    assert [found["title"] for found in listed(edgecli)] == sorted(
        found["title"] for found in listed(edgecli)
    )


def test_a_namespace_is_renamed_by_title_or_id(edgecli, ids, namespace_id, request):
    old = f"worker-{request.node.name}"

    by_title = edgecli("kv", "namespace", "rename", old, "--new-name", "renamed one")
    by_id = edgecli("kv", "namespace", "rename", "--namespace-id", namespace_id, "--new-name", "renamed two")

    assert by_title.out == f'Namespace {namespace_id} has the title "renamed one" now.\n'
    assert by_id.code == 0
    assert ids()["renamed two"] == namespace_id


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("no such title", "--new-name", "x"), 1, 'no namespace with the title "no such title"'),
        (("--namespace-id", "f" * 32, "--new-name", "x"), 1, "namespace not found [code: 10013]"),
        (("--namespace-id", "zz", "--new-name", "x"), 1, "[code: 10011]"),
        (("--new-name", "x"), 2, "Exactly one of OLD_NAME and --namespace-id"),
        (("a", "--namespace-id", ID, "--new-name", "x"), 2, "Exactly one of OLD_NAME and --namespace-id"),
        (("a",), 2, "Missing option '--new-name'"),
    ],
)
def test_a_rename_that_cannot_be_fails(edgecli, arguments, code, reason):
    done = edgecli("kv", "namespace", "rename", *arguments)

    assert done.code == code
    assert reason in done.err


# Delete


@pytest.mark.parametrize("answer", ["y\n", "yes\n", "Y\n", "YES", " yes \n"])
def test_a_yes_deletes(edgecli, ids, namespace_id, answer):
    done = edgecli("kv", "namespace", "delete", "--namespace-id", namespace_id, stdin=answer)

    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"Delete namespace {namespace_id} and all its keys? [y/n]: \n"
        f"Deleting namespace {namespace_id}.\nDeleted namespace {namespace_id}.\n"
    )
    assert namespace_id not in ids().values()


@pytest.mark.parametrize("answer", ["n\n", "no\n", "\n", "yess\n", "ja\n", "yes please\n", "y" * 5000])
def test_anything_else_does_not_delete(edgecli, ids, namespace_id, answer):
    done = edgecli("kv", "namespace", "delete", "--namespace-id", namespace_id, stdin=answer)

    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("[y/n]: \nNot deleting\n")
    assert namespace_id in ids().values()


def test_the_end_of_the_input_does_not_delete_and_fails(edgecli, ids, namespace_id):
    done = edgecli("kv", "namespace", "delete", "--namespace-id", namespace_id, stdin="")

    assert done.code == 1
    assert "Nothing is deleted" in done.err
    assert namespace_id in ids().values()


@pytest.mark.parametrize("yes", ["--yes", "-y", "--yes=true", "--skip-confirmation", "--force", "-f"])
def test_yes_deletes_without_asking(edgecli, ids, namespace_id, yes):
    done = edgecli("kv", "namespace", "delete", "--namespace-id", namespace_id, yes)

    assert done.out == f"Deleting namespace {namespace_id}.\nDeleted namespace {namespace_id}.\n"
    assert namespace_id not in ids().values()


def test_a_namespace_that_is_not_there_fails(edgecli):
    done = edgecli("kv", "namespace", "delete", "--namespace-id", "f" * 32, "--yes")

    assert done.code == 1
    assert "namespace not found [code: 10013]" in done.err


def test_deleting_needs_exactly_one_way_to_name_it(edgecli):
    assert edgecli("kv", "namespace", "delete", "--yes").code == 2
    assert edgecli("kv", "namespace", "delete", "--namespace-id", ID, "--binding", "B", "--yes").code == 2
