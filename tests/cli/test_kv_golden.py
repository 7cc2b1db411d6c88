"""edgecli kv: exactly what each command says, from making a namespace to deleting it."""

import json

import pytest

CONFIGURATION = 'name = "golden"\n'
PAIRS = [
    {"key": "b/1", "value": "one"},
    {"key": "b/2", "value": "AAH/", "base64": True, "metadata": {"type": "image"}, "expiration": 4000000000},
]

REFUSED = "Error: GET /accounts/ACCOUNT/storage/kv/namespaces/ID/{} failed with status 404.\n  {}\n"

# Arguments, what is typed, exit code, stdout, stderr. ID is the namespace's id, ACCOUNT its owner's.
STORY = (
    (
        "namespace create CARTS",
        "",
        0,
        'Creating namespace with title "golden-CARTS"\n'
        "Success!\n"
        "Add this to the kv_namespaces array (edge.toml):\n"
        '[[kv_namespaces]]\nbinding = "CARTS"\nid = "ID"\n',
        "",
    ),
    ("key put a value --binding CARTS", "", 0, 'Writing 5 bytes to key "a" in namespace ID.\n', ""),
    ("key get a --binding CARTS", "", 0, "value", ""),
    ("key get a --binding CARTS --text", "", 0, "value\n", ""),
    (
        "key get nobody --binding CARTS",
        "",
        1,
        "",
        REFUSED.format("values/nobody", "key not found [code: 10009]"),
    ),
    ("bulk put pairs.json --binding CARTS", "", 0, "Success! 2 pairs written.\n", ""),
    (
        "key list --binding CARTS",
        "",
        0,
        '[\n  {\n    "name": "a"\n  },\n  {\n    "name": "b/1"\n  },\n'
        '  {\n    "name": "b/2",\n    "expiration": "2096-10-02T07:06:40Z"\n  }\n]\n',
        "",
    ),
    (
        "key list --binding CARTS --prefix b/2 --with-metadata --epoch",
        "",
        0,
        '[\n  {\n    "name": "b/2",\n    "expiration": 4000000000,\n'
        '    "metadata": {\n      "type": "image"\n    }\n  }\n]\n',
        "",
    ),
    (
        "bulk get keys.json --binding CARTS",
        "",
        0,
        '{\n  "b/1": "one",\n  "nobody": null\n}\n',
        "",
    ),
    (
        "bulk delete keys.json --binding CARTS",
        "n\n",
        0,
        "Delete all keys in keys.json from namespace ID? [y/n]: \nNot deleting\n",
        "",
    ),
    (
        "bulk delete keys.json --binding CARTS",
        "y\n",
        0,
        "Delete all keys in keys.json from namespace ID? [y/n]: \nSuccess! 2 keys deleted.\n",
        "",
    ),
    ("key delete a --binding CARTS", "", 0, 'Deleting key "a" in namespace ID.\n', ""),
    ("key list --namespace-id ID --prefix a", "", 0, "[]\n", ""),
    (
        "namespace rename golden-CARTS --new-name golden-BASKETS",
        "",
        0,
        'Namespace ID has the title "golden-BASKETS" now.\n',
        "",
    ),
    (
        "namespace delete --binding CARTS",
        "yes\n",
        0,
        "Delete namespace ID and all its keys? [y/n]: \nDeleting namespace ID.\nDeleted namespace ID.\n",
        "",
    ),
    ("key list --binding CARTS", "", 1, "", REFUSED.format("keys", "namespace not found [code: 10013]")),
)


def test_every_command_says_exactly_this(edgecli, kv_server, project):
    account = kv_server.ready["account_id"]
    (project / "edge.toml").write_text(CONFIGURATION)
    (project / "pairs.json").write_text(json.dumps(PAIRS))
    (project / "keys.json").write_text('["b/1", "nobody"]')
    id_ = ""

    for arguments, typed, code, out, err in STORY:
        done = edgecli("kv", *arguments.replace("ID", id_).split(), stdin=typed)
        if not id_:
            id_ = done.out.split('\nid = "')[1].split('"')[0]
            snippet = done.out.partition("):\n")[2]
            (project / "edge.toml").write_text(CONFIGURATION + snippet)
            assert {"id": id_, "title": "golden-CARTS"} in json.loads(edgecli("kv", "namespace", "list").out)

        expected = [text.replace("ID", id_).replace("ACCOUNT", account) for text in (out, err)]
        assert [done.code, done.out, done.err] == [code, *expected], arguments


@pytest.mark.parametrize(
    "command",
    [
        "namespace list",
        "namespace delete --binding CARTS --yes",
        "key put k v --binding CARTS",
        "key list --binding CARTS",
        "key get k --binding CARTS",
        "key delete k --binding CARTS",
        "bulk put f.json --binding CARTS",
        "bulk delete f.json --binding CARTS --yes",
    ],
)
def test_an_environment_that_is_not_there_stops_every_command(edgecli, project, command):
    (project / "edge.toml").write_text(CONFIGURATION)
    (project / "f.json").write_text("[]")

    done = edgecli("kv", *command.split(), "--env", "nowhere")

    assert (done.code, done.out) == (1, "")
    assert 'There is no environment "nowhere"' in done.err


OPTIONS = {
    "namespace create": ("--env", "--preview"),
    "namespace list": (),
    "namespace delete": ("--binding", "--namespace-id", "--env", "--preview"),
    "key put": (
        *("--path", "--binding", "--namespace-id", "--env", "--preview"),
        *("--ttl", "--expiration", "--metadata", "--local", "--persist-to"),
    ),
    "key list": ("--binding", "--namespace-id", "--env", "--preview", "--prefix", "--local", "--persist-to"),
    "key get": ("--binding", "--namespace-id", "--env", "--preview", "--text", "--local", "--persist-to"),
    "key delete": ("--binding", "--namespace-id", "--env", "--preview", "--local", "--persist-to"),
    "bulk put": ("--binding", "--namespace-id", "--env", "--preview", "--local", "--persist-to"),
    "bulk delete": ("--binding", "--namespace-id", "--env", "--preview", "--local", "--persist-to"),
}


@pytest.mark.parametrize("command", OPTIONS)
def test_every_command_has_the_options_of_the_specifications_table(edgecli, command):
    shown = edgecli("kv", *command.split(), "--help").out.split()

    assert [option for option in OPTIONS[command] if option not in shown] == []
