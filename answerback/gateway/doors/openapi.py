"""Describes the HTTP API as OpenAPI 3.1, drawn from the table of verbs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from answerback import __version__
from answerback.gateway.doors.http_body import LONGEST_WAIT
from answerback.gateway.verbs.table import VERBS, Verb
from answerback.model import Json

REFUSALS: Mapping[str, str] = {
    "401": "No valid key was given.",
    "403": "The key lacks the route's scope.",
    "404": "There is no such thing in the key's environment.",
    "409": "What is stored stands against it.",
    "413": "The body is too large.",
    "422": "A parameter is missing, unknown or out of range, or the recipient is suppressed.",
    "500": "The gateway failed; its log says what, under the request id.",
    "503": "The gateway is not ready for this, for example no relay is set.",
}
ERROR: Json = {
    "type": "object",
    "required": ["error", "request_id"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string", "description": "stable; branch on this"},
                "message": {"type": "string", "description": "what happened and what to do, for a person"},
                "details": {"type": "object"},
            },
        },
        "request_id": {"type": "string"},
    },
}
KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same request has one effect and one result.",
    "schema": {"type": "string", "maxLength": 200},
}


def description(patient: frozenset[str]) -> Json:
    """Return the OpenAPI document; `patient` are the verbs whose route takes `wait`."""
    paths: dict[str, dict[str, Json]] = {}
    schemas: dict[str, Any] = {"Error": ERROR}
    for verb in VERBS:
        if verb.path:
            paths.setdefault(f"/v1{verb.path}", {})[verb.method.lower()] = _operation(verb, schemas, patient)
    return {
        "openapi": "3.1.0",
        "info": {"title": "answerback", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {f"E{status}": _refused(says) for status, says in REFUSALS.items()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(verb: Verb, schemas: dict[str, Any], patient: frozenset[str]) -> Json:
    schema = deepcopy(verb.request.model_json_schema(ref_template="#/components/schemas/{model}"))
    schemas.update(schema.pop("$defs", {}))
    in_path = re.findall(r"\{(\w+)\}", verb.path)
    fields: dict[str, Any] = schema.get("properties", {})
    parameters = [_parameter(name, fields.pop(name), "path", required=True) for name in in_path]
    required = [name for name in schema.pop("required", []) if name in fields]
    operation: Json = {
        "operationId": verb.name,
        "summary": (verb.run.__doc__ or "").split("\n\n")[0].strip(),
        "description": verb.request.__doc__ or "",
        "security": [{"key": [verb.scope]}],
        "responses": {"200": _done(), **{s: {"$ref": f"#/components/responses/E{s}"} for s in REFUSALS}},
    }
    if verb.writes:
        parameters.append(KEY)
        operation["requestBody"] = _body(
            verb, schemas, {**schema, "required": required}, needed=bool(required)
        )
    else:
        parameters += [
            _parameter(name, one, "query", required=name in required) for name, one in fields.items()
        ]
    if verb.name in patient:
        parameters.append(_parameter("wait", _wait(), "query", required=False))
    return operation | {"parameters": parameters}


def _wait() -> Json:
    says = "seconds to wait for something to return"
    return {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT, "default": 0, "description": says}


def _parameter(name: str, schema: Json, where: str, *, required: bool) -> Json:
    return {"name": name, "in": where, "required": required, "schema": schema}


def _body(verb: Verb, schemas: dict[str, Any], schema: Json, *, needed: bool) -> Json:
    """Put the schema without the path's names among the others and return the body that refers to it."""
    name = verb.request.__name__ if schema["properties"] else "Nothing"
    schemas[name] = schema | {"title": name}
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {"required": needed, "content": content}


def _done() -> Json:
    return {"description": "Done.", "content": {"application/json": {"schema": {"type": "object"}}}}


def _refused(says: str) -> Json:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": says, "content": {"application/json": {"schema": schema}}}
