"""Everything that can be refused or go wrong, as one tree.

AnswerbackError
├── Refused                what was asked can not be done; nothing was stored
│   ├── BadRequest         a value is missing, unknown or out of range
│   │   └── BadAddress · UnknownSchedule · BadSchedule · DeadlineInThePast · DeadlineTooFar
│   ├── BadUsage · TooLarge · NoRoute · MethodNotAllowed      the door itself was used wrongly
│   ├── NotFound
│   │   └── NoInbox
│   ├── Unauthenticated
│   │   └── KeyMissing
│   ├── ScopeMissing
│   ├── Conflict
│   │   ├── KeyInUse · IdempotencyMismatch · InProgress · LeaseExpired · AlreadyDecided
│   │   ├── WaitpointOpen · NotNow
│   │   └── Forbidden      the database forbids it: its constraint is named
│   └── Suppressed         the recipient must not be written to
├── Unable                 the place is not ready
│   ├── NoRelay · NoServer · AlreadyServing · Unreachable · BadSettings · DemoFailed
│   ├── UnknownSetting
│   └── NoDatabase · CorruptDatabase · NewerDatabase · DatabaseBusy
├── Internal               a fault of ours, said without its innards
└── Foreign                an error of a newer server that this client does not know
"""

from __future__ import annotations

from types import MappingProxyType

from answerback.model.scope import Json


class AnswerbackError(Exception):
    """Something was refused or went wrong."""

    #: stable word a program can branch on
    code = "error"
    #: HTTP status of the doors
    status = 500
    #: exit code of the command line
    exit_code = 1

    def __init__(self, **details: object) -> None:
        self.details: Json = details
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The class's docstring with the details filled in: what happened and what to do."""
        lines = (type(self).__doc__ or "").split("\n\n", 1)[0]
        return " ".join(lines.split()).format_map(_Details(self.details))


class _Details(dict[str, object]):
    """Details for a message; a missing one shows as its name."""

    def __missing__(self, key: str) -> str:
        return f"<{key}>"


class Refused(AnswerbackError):
    """The request was refused; nothing was stored."""

    code, status, exit_code = "refused", 400, 2


class BadRequest(Refused):
    """{field}: {problem}"""

    code, status = "bad_request", 422


class BadAddress(BadRequest):
    """{address} is not a mail address we can write to ({problem}). Give one as name@domain."""

    code = "bad_address"


class UnknownSchedule(BadRequest):
    """There is no schedule {name}. `answerback schedules list` shows them: {known}."""

    code = "unknown_schedule"


class BadSchedule(BadRequest):
    """The schedule {name} can not be used: {problem}"""

    code = "bad_schedule"


class DeadlineInThePast(BadRequest):
    """The deadline {deadline} is already past. Give one in the future, as 10bd, 36h or an ISO time with
    zone."""

    code = "deadline_in_the_past"


class DeadlineTooFar(BadRequest):
    """The deadline {deadline} is more than 30 days ahead. Give an earlier one and ask again when it has
    passed."""

    code = "deadline_too_far"


class BadUsage(Refused):
    """{problem} See `{command} --help`."""

    code = "usage"


class TooLarge(Refused):
    """The request body is larger than {limit} octets. Send less, or send large files another way."""

    code, status = "too_large", 413


class NoRoute(Refused):
    """There is no {method} {path} here. `/openapi.json` lists every route."""

    code, status, exit_code = "no_route", 404, 3


class MethodNotAllowed(Refused):
    """{path} does not take {method}. `/openapi.json` lists every route."""

    code, status = "method_not_allowed", 405


class NotFound(Refused):
    """There is no {kind} {id} here."""

    code, status, exit_code = "not_found", 404, 3
    #: the command that lists a kind
    lists = MappingProxyType(
        {
            "agent": "agents list",
            "inbox of this agent": "inboxes list",
            "key in force": "keys list",
            "review": "reviews list",
            "suppression of": "suppressions list",
            "wait": "waits list",
            "waitpoint": "waits list",
        }
    )

    @property
    def message(self) -> str:
        """The sentence, and the command that lists what there is."""
        command = self.lists.get(str(self.details.get("kind")))
        return super().message + (f" `answerback {command}` shows what there is." if command else "")


class NoInbox(NotFound):
    """Agent {agent} has no inbox. `answerback inboxes add ADDRESS --agent {agent}` adds one."""

    code = "no_inbox"


class Unauthenticated(Refused):
    """No valid key was given. Send `Authorization: Bearer <key>`; `answerback keys create` makes one."""

    code, status, exit_code = "unauthenticated", 401, 4


class KeyMissing(Unauthenticated):
    """The setting client.url is set and client.key is missing. Put a key there, or into
    ANSWERBACK_CLIENT__KEY; `answerback keys create` makes one."""

    code = "key_missing"


class ScopeMissing(Refused):
    """This key lacks the scope {scope}. Use one that has it; `answerback keys create --scope {scope}`
    makes one."""

    code, status, exit_code = "scope_missing", 403, 4


class Conflict(Refused):
    """{problem}"""

    code, status, exit_code = "conflict", 409, 5


class KeyInUse(Conflict):
    """The key {correlation_key} already waits for an answer to another question.
    Choose another key, or cancel that wait first."""

    code = "key_in_use"


class IdempotencyMismatch(Conflict):
    """The Idempotency-Key {key} was used for a different request. Use a fresh one for each request."""

    code = "idempotency_mismatch"


class InProgress(Conflict):
    """A request with the Idempotency-Key {key} is still running. Try again in a few seconds."""

    code = "in_progress"


class LeaseExpired(Conflict):
    """The lease {lease_id} is not in force any more. Lease again; the item may come to you with a new
    lease."""

    code = "lease_expired"


class AlreadyDecided(Conflict):
    """The review {id} was already decided ({decision}). Nothing was changed."""

    code = "already_decided"


class WaitpointOpen(Conflict):
    """The waitpoint {id} is still open. Cancel it, or wait until it has ended, before waiting again."""

    code = "waitpoint_open"


class NotNow(Conflict):
    """{what} is not possible while it is {state}. {instead}"""

    code = "not_now"


class Forbidden(Conflict):
    """The database forbids this ({constraint}). Nothing was stored."""

    code = "forbidden"


class Suppressed(Refused):
    """{address} must not be written to ({reason}). Remove it with `answerback suppressions remove` if that
    is wrong."""

    code, status, exit_code = "recipient_suppressed", 422, 6


class Unable(AnswerbackError):
    """The gateway is not ready for this."""

    code, status, exit_code = "unable", 503, 7


class NoRelay(Unable):
    """No outgoing relay is set, so nothing can be sent. Set `smtp_out.host` in answerback.toml
    (or ANSWERBACK_SMTP_OUT__HOST)."""

    code = "no_relay"


class NoServer(Unable):
    """No server is running here, so no answer can come in. The question is queued;
    start `answerback serve` and ask again with the same key to wait for the answer."""

    code = "no_server"


class NoDatabase(Unable):
    """There is no database at {path}. `answerback init` makes one."""

    code = "no_database"


class CorruptDatabase(Unable):
    """The database {path} is damaged ({problem}). Stop, keep a copy of the file, and restore your last
    backup."""

    code = "corrupt_database"


class NewerDatabase(Unable):
    """The database {path} was written by a newer answerback (schema {found}). Update answerback, or restore
    the backup made before the update."""

    code = "newer_database"


class DatabaseBusy(Unable):
    """The database {name} can not be used just now ({problem}). Nothing was stored; try again in a few
    seconds."""

    code = "database_busy"


class BadSettings(Unable):
    """The setting {setting} can not be used: {problem}"""

    code = "bad_settings"


class UnknownSetting(Unable):
    """There is no setting {setting}. Known: {known}."""

    code = "unknown_setting"


class AlreadyServing(Unable):
    """A server is running on {home} already. Stop that one first, or give this one another home with
    --home."""

    code = "already_serving"


class Unreachable(Unable):
    """No gateway answers at {url} ({problem}). Start `answerback serve` there, or correct `client.url`."""

    code = "unreachable"


class DemoFailed(Unable):
    """The demo can not go on: {problem}"""

    code = "demo_failed"


class Internal(AnswerbackError):
    """Something went wrong in the gateway, and nothing was stored. Its log says what, under {request_id}."""

    code = "internal"


class Foreign(AnswerbackError):
    """{message}"""

    code = "foreign"
