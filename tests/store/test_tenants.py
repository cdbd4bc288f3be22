"""Tenants, agents, inboxes, contacts, keys, suppressions, counters and schedules."""

from __future__ import annotations

from dataclasses import replace

from answerback.model import ApiKey, Suppression
from answerback.store import mailboxes, schedules, tenants
from answerback.store.session import Database
from tests.store.samples import (
    AGENT,
    BUYER,
    CONTACT,
    DAY,
    HOUR,
    INBOX,
    LIVE,
    NOW,
    OTHER,
    SCOPES,
    TEST,
    people,
)

KEY = ApiKey(
    id="key_1", scope=LIVE, name="ci", scopes=("send", "messages:read"), created_at=NOW, agent_id="agt_1"
)


def test_an_agent_is_found_by_name_and_by_id_in_its_scope_alone(db: Database) -> None:
    with db.write() as tx:
        people(tx)
    with db.read() as tx:
        assert tenants.agent(tx, LIVE, "buyer") == tenants.agent(tx, LIVE, "agt_1") == AGENT
        assert [tenants.agents(tx, scope) for scope in SCOPES] == [(AGENT,), (), ()]
        assert tenants.agent(tx, OTHER, "agt_1") is None


def test_an_agents_id_goes_before_anothers_name(db: Database) -> None:
    other = replace(AGENT, id="agt_2", name="agt_1")
    with db.write() as tx:
        people(tx)
        tenants.add_agent(tx, LIVE, other, NOW)
    with db.read() as tx:
        assert tenants.agent(tx, LIVE, "agt_1") == AGENT


def test_agent_and_owner_have_mailboxes_from_the_start(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        assert mailboxes.append(tx, LIVE, BUYER, "evt_1", "t", NOW, str) == 1
        assert mailboxes.append(tx, LIVE, "person:ops", "evt_1", "t", NOW, str) == 1


def test_an_inbox_is_found_without_regard_to_case(db: Database) -> None:
    with db.write() as tx:
        people(tx)
    with db.read() as tx:
        assert tenants.inbox(tx, LIVE, "BUYER@agents.example") == tenants.inbox(tx, LIVE, "inb_1") == INBOX
        assert tenants.inbox_at(tx, "buyer@AGENTS.example") == (LIVE, INBOX)
        assert tenants.inbox_at(tx, "nobody@agents.example") is None
        assert [tenants.inboxes(tx, scope) for scope in SCOPES] == [(INBOX,), (), ()]


def test_a_test_inbox_receives_no_mail(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        tenants.add_agent(tx, TEST, AGENT, NOW)
        tenants.add_inbox(tx, TEST, replace(INBOX, address="try@agents.example", sub_addresses=False), NOW)
        assert tenants.inbox_at(tx, "try@agents.example") is None


def test_a_domains_oldest_inbox_takes_its_postmasters_mail(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        tenants.add_inbox(tx, LIVE, replace(INBOX, id="inb_0", address="new@agents.example"), NOW + DAY)
        assert tenants.inbox_of_domain(tx, "Agents.example") == (LIVE, INBOX)
        assert tenants.inbox_of_domain(tx, "ents.example") is None
        assert tenants.inbox_of_domain(tx, "%") is None


def test_a_contact_is_found_by_each_address_on_its_channel(db: Database) -> None:
    plain = replace(CONTACT, id="con_2", name="Ada", addresses=(), hours={})
    with db.write() as tx:
        people(tx)
        tenants.add_contact(tx, LIVE, CONTACT, NOW)
        tenants.add_contact(tx, LIVE, plain, NOW)
    with db.read() as tx:
        assert tenants.contact_of(tx, LIVE, "PAT@supplier.example") == CONTACT
        assert tenants.contact_of(tx, LIVE, "+4930123", "sms") == CONTACT
        assert tenants.contact_of(tx, LIVE, "+4930123") is None
        assert [tenants.contacts(tx, scope) for scope in SCOPES] == [(plain, CONTACT), (), ()]


def test_a_key_is_found_by_its_hash_and_says_when_it_was_revoked(db: Database) -> None:
    owners = replace(KEY, id="key_2", agent_id="", created_at=NOW + HOUR)
    with db.write() as tx:
        people(tx)
        tenants.add_key(tx, KEY, "aa")
        tenants.add_key(tx, owners, "bb")
        assert [tenants.revoke_key(tx, scope, "key_1", NOW + DAY) for scope in (OTHER, LIVE, LIVE)] == [
            False,
            True,
            False,
        ]
    with db.read() as tx:
        assert tenants.key_by_hash(tx, "aa") == replace(KEY, revoked_at=NOW + DAY)
        assert tenants.key_by_hash(tx, "cc") is None
        assert tenants.keys(tx, LIVE) == (replace(KEY, revoked_at=NOW + DAY), owners)
        assert tenants.keys(tx, TEST) == ()


def test_an_address_is_suppressed_once_per_channel_and_scope(db: Database) -> None:
    bounced = Suppression(address="Pat@supplier.example", reason="bounce", created_at=NOW)
    with db.write() as tx:
        people(tx)
        assert tenants.suppress(tx, LIVE, bounced) is True
        assert (
            tenants.suppress(tx, LIVE, replace(bounced, address="pat@supplier.example", reason="manual"))
            is False
        )
    with db.read() as tx:
        assert tenants.suppressions(tx, LIVE) == (bounced,)
        asked_for = ["PAT@supplier.example", "kim@supplier.example"]
        assert tenants.suppressed(tx, LIVE, "email", asked_for) == {"PAT@supplier.example": "bounce"}
        assert tenants.suppressed(tx, LIVE, "sms", asked_for) == {}
        assert tenants.suppressed(tx, TEST, "email", asked_for) == {}
        assert tenants.suppressed(tx, LIVE, "email", []) == {}
    with db.write() as tx:
        assert tenants.unsuppress(tx, LIVE, "email", "PAT@supplier.example") is True
        assert tenants.unsuppress(tx, LIVE, "email", "PAT@supplier.example") is False


def test_counters_count_per_scope(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        tenants.count(tx, LIVE, "bad_mac")
        tenants.count(tx, LIVE, "bad_mac", 4)
        tenants.count(tx, TEST, "loops", 2)
        assert [tenants.counts(tx, scope) for scope in SCOPES] == [{"bad_mac": 5}, {"loops": 2}, {}]


def test_every_version_of_a_schedule_is_kept(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        assert schedules.add_schedule(tx, LIVE, "vendor-quote", {"gaps": ["1bd"]}, NOW) == 2
        assert schedules.add_schedule(tx, LIVE, "code", {"gaps": ["5min"]}, NOW) == 1
    with db.read() as tx:
        assert schedules.schedule_policy(tx, LIVE, "vendor-quote") == (2, {"gaps": ["1bd"]})
        assert schedules.schedule_policy(tx, LIVE, "vendor-quote", 1) == (1, {"gaps": ["2bd", "2bd"]})
        assert schedules.schedule_policy(tx, LIVE, "vendor-quote", 3) is None
        assert schedules.schedule_policy(tx, TEST, "vendor-quote") is None
        assert [schedules.schedule_names(tx, scope) for scope in SCOPES] == [("code", "vendor-quote"), (), ()]
