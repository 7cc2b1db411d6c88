"""The API's description in OpenAPI 3.1, written from the table of routes.

Owns  the document's shape.
Not   a fact about any route.

Source: OpenAPI Specification 3.1. Every success but bytes and text is the envelope; every refusal is. A route
names its permission group in the extension `x-permission`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from edgestead import __version__
from edgestead.model.envelope import Cause, Message
from edgestead.rest import examples
from edgestead.rest.declared import ANYTHING, JSON, Answers, Parameter
from edgestead.rest.openapi_schemas import schemas_of
from edgestead.rest.routing import ANY, OBJECTS, Route

Json = dict[str, Any]

OPENAPI = "3.1.0"
METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS")  # of a route that takes any
REFUSALS = ("4XX", "503")  # permanent ones, and a server that cannot take writes now
_REF = "#/components/schemas/{name}"
_SCHEMES: Json = {
    "token": {"type": "http", "scheme": "bearer"},
    "email": {"type": "apiKey", "in": "header", "name": "X-Auth-Email"},
    "key": {"type": "apiKey", "in": "header", "name": "X-Auth-Key"},
}
_SECURITY: list[Json] = [{"token": []}, {"email": [], "key": []}]
OBJECTS_ADDRESS = "127.0.0.1:8788"  # the default of --objects-http
_OBJECTS_SERVER: Json = {
    "url": "http://{address}",
    "description": "The objects' own address: `--objects-http`, or `objects` in the ready file.",
    "variables": {"address": {"default": OBJECTS_ADDRESS}},
}
_ABOUT = (
    "DNS, key-values, firewall rulesets, tokens and stateful objects of one Edgestead server. Every JSON "
    "answer is an envelope of `result`, `success`, `errors` and `messages`. A permanent refusal is never "
    "409, 429 or 5xx. Unknown members and query parameters are ignored, but in rulesets and by operators' "
    "routes of objects."
)


def document(routes: Sequence[Route]) -> Json:
    """The whole description. Two routes with one handler get names of their own."""
    types = [*_types(routes), Message, Cause]
    schemas, components = schemas_of(types, _REF)
    schema_of = {_key(type_): schema for type_, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Json] = {}
    names = _operation_names(routes)
    for row, name in zip(routes, names, strict=True):
        operations = paths.setdefault(row.path.replace("*}", "}"), {})
        for method in METHODS if row.method == ANY else (row.method,):
            one = name if method == row.method else f"{name}_{method.lower()}"
            operations[method.lower()] = _operation(row, one, schema_of)
    return {
        "openapi": OPENAPI,
        "info": {"title": "Edgestead", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in sorted({tag_of(row) for row in routes}, key=str.lower)],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**dict(sorted(components.items())), "Failure": _failure(schema_of)},
            "responses": {"Failure": {"description": "Refused.", "content": _content(_ref("Failure"))}},
            "securitySchemes": _SCHEMES,
        },
    }


# Parts of the API that are not called what their handlers' module is.
_TAGS = {
    "access_rules": "IP access rules",
    "agent_rules": "user agent rules",
    "catalogs": "secondaries",
    "certificate_packs": "certificates",
    "custom_certificates": "certificates",
    "secondary_zones": "secondaries",
    "outgoing_transfers": "secondaries",
    "custom_nameservers": "custom name servers",
    "dns_records": "DNS records",
    "dns_settings": "DNS settings",
    "ended": "ended by a date",
    "followed_catalogs": "secondaries",
    "ips": "addresses of the edge",
    "kv_bulk": "key-value",
    "kv_namespaces": "key-value",
    "kv_values": "key-value",
    "objects_node": "objects",
    "openapi": "description",
    "security_events": "security events",
    "zone_extras": "zones",
    "zone_files": "zone files",
    "zone_settings": "zone settings",
    "tsig_keys": "TSIG keys",
}


def tag_of(row: Route) -> str:
    """The part of the API that a route belongs to."""
    module = row.handler.__module__.rpartition(".")[2]
    return _TAGS.get(module, module)


def _types(routes: Iterable[Route]) -> Iterator[Any]:
    """Every type that a schema is needed for, each once."""
    found: dict[str, Any] = {}
    for row in routes:
        for type_ in (*row.takes.values(), row.answers.result, row.answers.info):
            if type_ is not None:
                found.setdefault(_key(type_), type_)
    return iter(found.values())


def _key(type_: Any) -> str:
    """Types are not all hashable, but say who they are."""
    return f"{getattr(type_, '__module__', '')} {type_!r}"


def _operation_names(routes: Sequence[Route]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for row in routes:
        name = row.handler.__name__
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}_{seen[name]}"


def _operation(row: Route, name: str, schema_of: Json) -> Json:
    operation: Json = {
        "operationId": name,
        "tags": [tag_of(row)],
        "summary": row.summary,
        "security": [] if row.public else _SECURITY,
        **({"servers": [_OBJECTS_SERVER]} if row.face is OBJECTS else {}),
        "parameters": [*map(_path_parameter, row.parameters), *map(_query_parameter, row.query)],
        "responses": {
            **_answer(row.answers, schema_of),
            **{status: {"$ref": "#/components/responses/Failure"} for status in REFUSALS},
        },
    }
    if row.change is not None:
        operation["deprecated"] = True
    if row.description:
        operation["description"] = row.description
    if row.permission is not None:
        operation["x-permission"] = row.permission
    if row.takes:
        contents = {media: _content_of(type_, schema_of) for media, type_ in row.takes.items()}
        body = examples.body_of(row)
        if body is not None and not row.has_ended and JSON in contents:
            contents[JSON]["example"] = body
        operation["requestBody"] = {"required": True, "content": contents}
    return operation


def _path_parameter(name: str) -> Json:
    schema: Json = {"type": "string", "minLength": 1}
    if name == "id" or name.endswith("_id"):
        digits = 64 if name == "id" else 32  # objects have the longer ones
        schema = {"type": "string", "pattern": f"^[0-9a-f]{{{digits}}}$"}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(parameter: Parameter) -> Json:
    schema: Json = {"type": parameter.kind}
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.default is not None:
        schema["default"] = parameter.default
    if parameter.repeated:
        schema = {"type": "array", "items": schema}
    return {"name": parameter.name, "in": "query", "description": parameter.summary, "schema": schema}


def _answer(answers: Answers, schema_of: Json) -> Json:
    """A route that only refuses says so by the status of its refusal."""
    if answers.media == ANYTHING:
        return {"default": {"description": "Whatever the object answers."}}
    refuses = answers.status >= 400
    return {} if refuses else {str(answers.status): _success(answers, schema_of)}


def _success(answers: Answers, schema_of: Json) -> Json:
    if answers.status == 204:
        return {"description": "Done. There is no body."}
    if answers.bare:
        return {"description": "Done.", "content": _content(schema_of[_key(answers.result)])}
    if answers.media != JSON:
        return {"description": "The bytes themselves.", "content": {answers.media: {}}}
    members: Json = {"result": schema_of[_key(answers.result)], **_rest(schema_of)}
    needed = ["result", "success", "errors", "messages"]
    if answers.info is not None:
        members["result_info"] = schema_of[_key(answers.info)]
    schema = {"type": "object", "required": needed, "properties": members}
    return {"description": "Done.", "content": _content(schema)}


def _rest(schema_of: Json) -> Json:
    return {
        "success": {"const": True},
        "errors": {"type": "array", "maxItems": 0},
        "messages": {"type": "array", "items": schema_of[_key(Message)]},
    }


def _failure(schema_of: Json) -> Json:
    return {
        "type": "object",
        "required": ["result", "success", "errors", "messages"],
        "properties": {
            "result": {"type": "null"},
            "success": {"const": False},
            "errors": {"type": "array", "minItems": 1, "items": schema_of[_key(Cause)]},
            "messages": {"type": "array", "items": schema_of[_key(Message)]},
        },
    }


def _content(schema: Json) -> Json:
    return {JSON: {"schema": schema}}


def _content_of(type_: Any, schema_of: Json) -> Json:
    return {} if type_ is None else {"schema": schema_of[_key(type_)]}


def _ref(name: str) -> Json:
    return {"$ref": _REF.format(name=name)}
