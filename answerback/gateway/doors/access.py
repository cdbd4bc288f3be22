"""Says who calls: the owner of a key over HTTP, or the operator at this machine."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from answerback.errors import BadRequest, NotFound, Unauthenticated
from answerback.gateway.context import Caller
from answerback.gateway.verbs.admin import SCOPES
from answerback.store import tenants

if TYPE_CHECKING:
    from answerback.gateway.context import Context
    from answerback.model import Agent, Scope

#: characters; our own keys have about 50
LONGEST_KEY = 200


def by_key(context: Context, authorization: str) -> Caller:
    """Return the caller whose key stands in an Authorization header (RFC 6750 section 2.1).

    Raises:
        Unauthenticated: always with the same words, so that nobody learns which keys there were.
    """
    scheme, _, secret = authorization.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret or len(secret) > LONGEST_KEY:
        raise Unauthenticated
    with context.db.read() as tx:
        key = tenants.key_by_hash(tx, sha256(secret.encode("utf-8", "replace")).hexdigest())
    if key is None or key.revoked_at is not None:
        raise Unauthenticated
    return Caller(
        scope=key.scope,
        principal=f"agent:{key.agent_id}" if key.agent_id else "operator",
        agent_id=key.agent_id,
        scopes=frozenset(key.scopes),
        key_id=key.id,
    )


def at_this_machine(context: Context, scope: Scope, name: str, *, needs_agent: bool) -> Caller:
    """Return the caller of a command that opens the database itself: whoever can, may do everything.

    It speaks for the agent of that name or id, for a person where the name begins with `person:`, for the
    only agent where one is needed and none named, else for the operator.

    Raises:
        NotFound: there is no such agent. BadRequest: one must be named.
    """
    everything = frozenset((*SCOPES, ""))
    if name.startswith("person:"):
        return Caller(scope=scope, principal=name, agent_id="", scopes=everything)
    agent = _agent(context, scope, name) if name or needs_agent else None
    principal, agent_id = (f"agent:{agent.id}", agent.id) if agent else ("operator", "")
    return Caller(scope=scope, principal=principal, agent_id=agent_id, scopes=everything)


def _agent(context: Context, scope: Scope, name: str) -> Agent:
    with context.db.read() as tx:
        if name:
            agent = tenants.agent(tx, scope, name)
            if agent is None:
                raise NotFound(kind="agent", id=name)
            return agent
        agents = tenants.agents(tx, scope)
    if not agents:
        raise BadRequest(field="--as", problem="there is no agent yet; `answerback agents add NAME` adds one")
    if len(agents) > 1:
        names = ", ".join(agent.name for agent in agents)
        raise BadRequest(field="--as", problem=f"there are several agents; name one of {names}")
    return agents[0]
