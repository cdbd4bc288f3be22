CREATE TABLE tenants (
	tenant TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_tenants PRIMARY KEY (tenant)
)
 STRICT

CREATE TABLE contents (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	octets BLOB NOT NULL,
	CONSTRAINT pk_contents PRIMARY KEY (tenant, environment, sha256),
	CONSTRAINT fk_contents_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_contents_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE mailboxes (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	principal TEXT NOT NULL,
	last_sequence INTEGER NOT NULL,
	CONSTRAINT pk_mailboxes PRIMARY KEY (tenant, environment, principal),
	CONSTRAINT fk_mailboxes_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_mailboxes_last_sequence CHECK (last_sequence >= 0),
	CONSTRAINT ck_mailboxes_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TRIGGER tr_mailboxes_counter BEFORE UPDATE ON mailboxes FOR EACH ROW WHEN NEW.last_sequence NOT IN (OLD.last_sequence, OLD.last_sequence + 1) BEGIN SELECT RAISE(ABORT, 'tr_mailboxes_counter'); END

CREATE TABLE idempotency (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	owner TEXT NOT NULL,
	"key" TEXT NOT NULL,
	digest TEXT NOT NULL,
	at INTEGER NOT NULL,
	status INTEGER,
	body TEXT,
	CONSTRAINT pk_idempotency PRIMARY KEY (tenant, environment, owner, "key"),
	CONSTRAINT fk_idempotency_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_idempotency_finished CHECK ((status IS NULL) = (body IS NULL)),
	CONSTRAINT ck_idempotency_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE agents (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	owner TEXT NOT NULL,
	identity_ref TEXT NOT NULL,
	state TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_agents PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_agents_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_agents_state CHECK (state IN ('active', 'suspended', 'deleted')),
	CONSTRAINT uq_agents_name UNIQUE (tenant, environment, name),
	CONSTRAINT ck_agents_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE contacts (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	zone TEXT NOT NULL,
	country TEXT NOT NULL,
	hours TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_contacts PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_contacts_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_contacts_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE suppressions (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	channel TEXT NOT NULL,
	folded TEXT NOT NULL,
	address TEXT NOT NULL,
	reason TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_suppressions PRIMARY KEY (tenant, environment, channel, folded),
	CONSTRAINT fk_suppressions_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_suppressions_reason CHECK (reason IN ('bounce', 'complaint', 'opt_out', 'manual')),
	CONSTRAINT ck_suppressions_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE counters (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	name TEXT NOT NULL,
	total INTEGER NOT NULL,
	CONSTRAINT pk_counters PRIMARY KEY (tenant, environment, name),
	CONSTRAINT fk_counters_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_counters_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE schedules (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	name TEXT NOT NULL,
	version INTEGER NOT NULL,
	policy TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_schedules PRIMARY KEY (tenant, environment, name, version),
	CONSTRAINT fk_schedules_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_schedules_version CHECK (version >= 1),
	CONSTRAINT ck_schedules_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TRIGGER tr_schedules_no_update BEFORE UPDATE ON schedules FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'tr_schedules_no_update'); END

CREATE TRIGGER tr_schedules_no_delete BEFORE DELETE ON schedules FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'tr_schedules_no_delete'); END

CREATE TABLE mailbox_items (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	principal TEXT NOT NULL,
	sequence INTEGER NOT NULL,
	event_id TEXT NOT NULL,
	type TEXT NOT NULL,
	at INTEGER NOT NULL,
	state TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	lease_id TEXT,
	lease_until INTEGER,
	acked_lease TEXT,
	envelope TEXT NOT NULL,
	CONSTRAINT pk_mailbox_items PRIMARY KEY (tenant, environment, principal, sequence),
	CONSTRAINT fk_mailbox_items_principal FOREIGN KEY(tenant, environment, principal) REFERENCES mailboxes (tenant, environment, principal),
	CONSTRAINT ck_mailbox_items_state CHECK (state IN ('ready', 'leased', 'acked', 'dead')),
	CONSTRAINT ck_mailbox_items_sequence CHECK (sequence >= 1),
	CONSTRAINT ck_mailbox_items_leased CHECK (state <> 'leased' OR (lease_id IS NOT NULL AND lease_until IS NOT NULL)),
	CONSTRAINT ck_mailbox_items_acked_by_lease CHECK (state <> 'acked' OR (acked_lease IS NOT NULL AND lease_id IS NOT NULL AND acked_lease = lease_id)),
	CONSTRAINT ck_mailbox_items_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE INDEX ix_mailbox_items_pending ON mailbox_items (tenant, environment, principal, sequence) WHERE state IN ('ready', 'leased')

CREATE TRIGGER tr_mailbox_items_counter BEFORE INSERT ON mailbox_items FOR EACH ROW WHEN NEW.sequence <> coalesce((SELECT last_sequence FROM mailboxes WHERE tenant = NEW.tenant AND environment = NEW.environment AND principal = NEW.principal), 0) BEGIN SELECT RAISE(ABORT, 'tr_mailbox_items_counter'); END

CREATE TABLE inboxes (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	channel TEXT NOT NULL,
	address TEXT NOT NULL,
	folded TEXT NOT NULL,
	display_name TEXT NOT NULL,
	sub_addresses INTEGER NOT NULL,
	external TEXT NOT NULL,
	zone TEXT NOT NULL,
	country TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_inboxes PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_inboxes_agent FOREIGN KEY(tenant, environment, agent_id) REFERENCES agents (tenant, environment, id),
	CONSTRAINT ck_inboxes_external CHECK (external IN ('refuse', 'verified', 'all')),
	CONSTRAINT ck_inboxes_sub_addresses CHECK (sub_addresses IN (0, 1)),
	CONSTRAINT uq_inboxes_address UNIQUE (tenant, environment, channel, folded),
	CONSTRAINT ck_inboxes_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE UNIQUE INDEX ux_inboxes_live_address ON inboxes (channel, folded) WHERE environment = 'live'

CREATE TABLE contact_addresses (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	channel TEXT NOT NULL,
	folded TEXT NOT NULL,
	contact_id TEXT NOT NULL,
	address TEXT NOT NULL,
	position INTEGER NOT NULL,
	CONSTRAINT pk_contact_addresses PRIMARY KEY (tenant, environment, channel, folded),
	CONSTRAINT fk_contact_addresses_contact FOREIGN KEY(tenant, environment, contact_id) REFERENCES contacts (tenant, environment, id),
	CONSTRAINT ck_contact_addresses_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE api_keys (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	name TEXT NOT NULL,
	scopes TEXT NOT NULL,
	agent_id TEXT,
	created_at INTEGER NOT NULL,
	revoked_at INTEGER,
	CONSTRAINT pk_api_keys PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_api_keys_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT fk_api_keys_agent FOREIGN KEY(tenant, environment, agent_id) REFERENCES agents (tenant, environment, id),
	CONSTRAINT uq_api_keys_sha256 UNIQUE (sha256),
	CONSTRAINT ck_api_keys_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE received (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	inbox_id TEXT NOT NULL,
	inbox_ref TEXT GENERATED ALWAYS AS (nullif(inbox_id, '')) STORED,
	identity TEXT NOT NULL,
	source TEXT NOT NULL,
	mail_from TEXT NOT NULL,
	recipient TEXT NOT NULL,
	at INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	state TEXT NOT NULL,
	note TEXT NOT NULL,
	message_id TEXT,
	deferred_until INTEGER,
	CONSTRAINT pk_received PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_received_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT fk_received_inbox FOREIGN KEY(tenant, environment, inbox_ref) REFERENCES inboxes (tenant, environment, id),
	CONSTRAINT fk_received_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id) DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT ck_received_state CHECK (state IN ('stored', 'processed', 'review', 'dropped')),
	CONSTRAINT uq_received_identity UNIQUE (tenant, environment, inbox_id, identity),
	CONSTRAINT ck_received_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE INDEX ix_received_stored ON received (at, id) WHERE state = 'stored'

CREATE TABLE conversations (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	inbox_id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	channel TEXT NOT NULL,
	subject TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_conversations PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_conversations_inbox FOREIGN KEY(tenant, environment, inbox_id) REFERENCES inboxes (tenant, environment, id),
	CONSTRAINT fk_conversations_agent FOREIGN KEY(tenant, environment, agent_id) REFERENCES agents (tenant, environment, id),
	CONSTRAINT ck_conversations_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE INDEX ix_conversations_newest ON conversations (tenant, environment, created_at, id)

CREATE TABLE received_octets (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	received_id TEXT NOT NULL,
	octets BLOB NOT NULL,
	CONSTRAINT pk_received_octets PRIMARY KEY (tenant, environment, received_id),
	CONSTRAINT fk_received_octets_received FOREIGN KEY(tenant, environment, received_id) REFERENCES received (tenant, environment, id),
	CONSTRAINT ck_received_octets_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE messages (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	conversation_id TEXT NOT NULL,
	number INTEGER NOT NULL,
	direction TEXT NOT NULL,
	kind TEXT NOT NULL,
	subject TEXT NOT NULL,
	sender_email TEXT NOT NULL,
	sender_name TEXT NOT NULL,
	at INTEGER NOT NULL,
	rfc_id TEXT NOT NULL,
	parent_id TEXT,
	trust TEXT,
	body_hash TEXT NOT NULL,
	received_id TEXT,
	wait_id TEXT,
	nudge_number INTEGER,
	content TEXT NOT NULL,
	CONSTRAINT pk_messages PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_messages_conversation FOREIGN KEY(tenant, environment, conversation_id) REFERENCES conversations (tenant, environment, id),
	CONSTRAINT fk_messages_parent FOREIGN KEY(tenant, environment, parent_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT fk_messages_received FOREIGN KEY(tenant, environment, received_id) REFERENCES received (tenant, environment, id),
	CONSTRAINT fk_messages_wait FOREIGN KEY(tenant, environment, wait_id) REFERENCES waits (tenant, environment, id) DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT ck_messages_direction CHECK (direction IN ('in', 'out')),
	CONSTRAINT ck_messages_trust CHECK (trust IN ('authenticated', 'unauthenticated', 'spam', 'blocked')),
	CONSTRAINT ck_messages_nudge CHECK (nudge_number IS NULL OR (nudge_number >= 1 AND kind = 'nudge' AND wait_id IS NOT NULL)),
	CONSTRAINT ck_messages_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE UNIQUE INDEX ux_messages_nudge ON messages (tenant, environment, wait_id, nudge_number) WHERE nudge_number IS NOT NULL

CREATE INDEX ix_messages_conversation ON messages (tenant, environment, conversation_id, at)

CREATE INDEX ix_messages_body_hash ON messages (tenant, environment, body_hash)

CREATE TABLE message_ids (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	rfc_id TEXT NOT NULL,
	message_id TEXT NOT NULL,
	source TEXT NOT NULL,
	CONSTRAINT pk_message_ids PRIMARY KEY (tenant, environment, rfc_id, message_id),
	CONSTRAINT fk_message_ids_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT ck_message_ids_source CHECK (source IN ('ours', 'provider', 'received')),
	CONSTRAINT ck_message_ids_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE outbox (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	message_id TEXT NOT NULL,
	recipient TEXT NOT NULL,
	state TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	queued_at INTEGER NOT NULL,
	next_attempt_at INTEGER,
	recorded_at INTEGER,
	code INTEGER NOT NULL,
	text TEXT NOT NULL,
	reported TEXT NOT NULL,
	reported_at INTEGER,
	wait_id TEXT,
	owner TEXT,
	lease_until INTEGER,
	CONSTRAINT pk_outbox PRIMARY KEY (tenant, environment, message_id, recipient),
	CONSTRAINT fk_outbox_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT fk_outbox_wait FOREIGN KEY(tenant, environment, wait_id) REFERENCES waits (tenant, environment, id) DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT ck_outbox_state CHECK (state IN ('queued', 'handing_over', 'sent', 'deferred', 'failed', 'unknown', 'withdrawn')),
	CONSTRAINT ck_outbox_next_attempt CHECK ((state IN ('queued', 'deferred')) = (next_attempt_at IS NOT NULL)),
	CONSTRAINT ck_outbox_lease CHECK ((state = 'handing_over') = (owner IS NOT NULL AND lease_until IS NOT NULL)),
	CONSTRAINT ck_outbox_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE INDEX ix_outbox_wait ON outbox (tenant, environment, wait_id)

CREATE INDEX ix_outbox_lease ON outbox (lease_until) WHERE lease_until IS NOT NULL

CREATE INDEX ix_outbox_next_attempt ON outbox (next_attempt_at, message_id) WHERE next_attempt_at IS NOT NULL

CREATE TRIGGER tr_outbox_sent BEFORE UPDATE ON outbox FOR EACH ROW WHEN OLD.state = 'sent' AND NEW.state <> 'sent' BEGIN SELECT RAISE(ABORT, 'tr_outbox_sent'); END

CREATE TABLE waitpoints (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	state TEXT NOT NULL,
	conversation_id TEXT NOT NULL,
	message_id TEXT NOT NULL,
	waiter TEXT NOT NULL,
	event_type TEXT NOT NULL,
	correlation_key TEXT NOT NULL,
	opened_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	subject_digest TEXT NOT NULL,
	min_trust TEXT NOT NULL,
	follows TEXT,
	closed_at INTEGER,
	reason TEXT NOT NULL,
	CONSTRAINT pk_waitpoints PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_waitpoints_conversation FOREIGN KEY(tenant, environment, conversation_id) REFERENCES conversations (tenant, environment, id),
	CONSTRAINT fk_waitpoints_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT fk_waitpoints_follows FOREIGN KEY(tenant, environment, follows) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT ck_waitpoints_state CHECK (state IN ('open', 'stalled', 'resolved', 'expired', 'cancelled')),
	CONSTRAINT ck_waitpoints_min_trust CHECK (min_trust IN ('authenticated', 'unauthenticated', 'spam', 'blocked')),
	CONSTRAINT ck_waitpoints_thirty_days CHECK (expires_at <= opened_at + 2592000000000),
	CONSTRAINT ck_waitpoints_closed CHECK ((state IN ('open', 'stalled')) = (closed_at IS NULL)),
	CONSTRAINT uq_waitpoints_terms UNIQUE (tenant, environment, id, expires_at, subject_digest, waiter),
	CONSTRAINT ck_waitpoints_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE UNIQUE INDEX ux_waitpoints_open_key ON waitpoints (tenant, environment, event_type, correlation_key) WHERE state IN ('open', 'stalled')

CREATE INDEX ix_waitpoints_conversation ON waitpoints (tenant, environment, conversation_id)

CREATE INDEX ix_waitpoints_key ON waitpoints (tenant, environment, correlation_key, event_type)

CREATE INDEX ix_waitpoints_expiry ON waitpoints (expires_at, id) WHERE state IN ('open', 'stalled')

CREATE TRIGGER tr_waitpoints_ended BEFORE UPDATE ON waitpoints FOR EACH ROW WHEN OLD.state IN ('resolved', 'expired', 'cancelled') BEGIN SELECT RAISE(ABORT, 'tr_waitpoints_ended'); END

CREATE TRIGGER tr_waitpoints_kept BEFORE DELETE ON waitpoints FOR EACH ROW WHEN OLD.state = 'resolved' BEGIN SELECT RAISE(ABORT, 'tr_waitpoints_kept'); END

CREATE TRIGGER tr_waitpoints_expires_at BEFORE UPDATE ON waitpoints FOR EACH ROW WHEN NEW.expires_at <> OLD.expires_at OR NEW.opened_at <> OLD.opened_at BEGIN SELECT RAISE(ABORT, 'tr_waitpoints_expires_at'); END

CREATE TABLE responders (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	waitpoint_id TEXT NOT NULL,
	responder TEXT NOT NULL,
	position INTEGER NOT NULL,
	CONSTRAINT pk_responders PRIMARY KEY (tenant, environment, waitpoint_id, responder),
	CONSTRAINT fk_responders_waitpoint FOREIGN KEY(tenant, environment, waitpoint_id) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT ck_responders_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE rejections (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	waitpoint_id TEXT NOT NULL,
	message_id TEXT NOT NULL,
	reason TEXT NOT NULL,
	digest TEXT NOT NULL,
	at INTEGER NOT NULL,
	CONSTRAINT pk_rejections PRIMARY KEY (tenant, environment, waitpoint_id, message_id, reason),
	CONSTRAINT fk_rejections_waitpoint FOREIGN KEY(tenant, environment, waitpoint_id) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT fk_rejections_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT ck_rejections_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE stands (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	message_id TEXT NOT NULL,
	waitpoint_id TEXT NOT NULL,
	CONSTRAINT pk_stands PRIMARY KEY (tenant, environment, message_id, waitpoint_id),
	CONSTRAINT fk_stands_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT fk_stands_waitpoint FOREIGN KEY(tenant, environment, waitpoint_id) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT ck_stands_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TABLE waits (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	number INTEGER NOT NULL,
	conversation_id TEXT NOT NULL,
	waitpoint_id TEXT,
	schedule_name TEXT NOT NULL,
	schedule_version INTEGER NOT NULL,
	state TEXT NOT NULL,
	reason TEXT NOT NULL,
	due_at INTEGER,
	updated_at INTEGER NOT NULL,
	details TEXT NOT NULL,
	CONSTRAINT pk_waits PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_waits_conversation FOREIGN KEY(tenant, environment, conversation_id) REFERENCES conversations (tenant, environment, id),
	CONSTRAINT fk_waits_waitpoint FOREIGN KEY(tenant, environment, waitpoint_id) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT fk_waits_schedule FOREIGN KEY(tenant, environment, schedule_name, schedule_version) REFERENCES schedules (tenant, environment, name, version),
	CONSTRAINT ck_waits_state CHECK (state IN ('waiting', 'nudged', 'paused', 'replied', 'abandoned', 'cancelled')),
	CONSTRAINT ck_waits_running CHECK ((state IN ('waiting', 'nudged')) = (due_at IS NOT NULL)),
	CONSTRAINT ck_waits_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE INDEX ix_waits_due ON waits (due_at, id) WHERE due_at IS NOT NULL

CREATE INDEX ix_waits_waitpoint ON waits (tenant, environment, waitpoint_id)

CREATE INDEX ix_waits_conversation ON waits (tenant, environment, conversation_id, number)

CREATE TABLE reviews (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	reason TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	conversation_id TEXT,
	message_id TEXT,
	received_id TEXT,
	wait_id TEXT,
	decision TEXT,
	decided_by TEXT,
	decided_at INTEGER,
	details TEXT NOT NULL,
	CONSTRAINT pk_reviews PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_reviews_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT fk_reviews_conversation FOREIGN KEY(tenant, environment, conversation_id) REFERENCES conversations (tenant, environment, id),
	CONSTRAINT fk_reviews_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT fk_reviews_received FOREIGN KEY(tenant, environment, received_id) REFERENCES received (tenant, environment, id),
	CONSTRAINT fk_reviews_wait FOREIGN KEY(tenant, environment, wait_id) REFERENCES waits (tenant, environment, id),
	CONSTRAINT ck_reviews_decided CHECK ((decided_at IS NULL) = (decision IS NULL) AND (decided_at IS NULL) = (decided_by IS NULL)),
	CONSTRAINT ck_reviews_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE INDEX ix_reviews_open ON reviews (tenant, environment, created_at) WHERE decided_at IS NULL

CREATE TABLE resolutions (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	waitpoint_id TEXT NOT NULL,
	message_id TEXT NOT NULL,
	responder TEXT NOT NULL,
	author TEXT NOT NULL,
	channel TEXT NOT NULL,
	evidence_level TEXT NOT NULL,
	trust TEXT NOT NULL,
	timing TEXT NOT NULL,
	responded_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	subject_digest TEXT NOT NULL,
	waiter TEXT NOT NULL,
	evidence TEXT NOT NULL,
	CONSTRAINT pk_resolutions PRIMARY KEY (tenant, environment, waitpoint_id),
	CONSTRAINT fk_resolutions_terms FOREIGN KEY(tenant, environment, waitpoint_id, expires_at, subject_digest, waiter) REFERENCES waitpoints (tenant, environment, id, expires_at, subject_digest, waiter),
	CONSTRAINT fk_resolutions_responder FOREIGN KEY(tenant, environment, waitpoint_id, responder) REFERENCES responders (tenant, environment, waitpoint_id, responder),
	CONSTRAINT fk_resolutions_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT ck_resolutions_evidence_level CHECK (evidence_level IN ('channel_claim', 'relay_session', 'access_aas_ref')),
	CONSTRAINT ck_resolutions_trust CHECK (trust IN ('authenticated', 'unauthenticated', 'spam', 'blocked')),
	CONSTRAINT ck_resolutions_timing CHECK (timing IN ('early', 'on_time', 'after_abandon', 'late', 'after_resolved', 'after_cancelled')),
	CONSTRAINT ck_resolutions_in_time CHECK (responded_at <= expires_at),
	CONSTRAINT ck_resolutions_not_waiter CHECK (author <> waiter AND responder <> waiter),
	CONSTRAINT ck_resolutions_domain CHECK (substr(responder, 1, 13) <> 'email-domain:' OR (length(author) > length(responder) - 13 AND substr(author, length(author) - length(responder) + 13) IN ('@' || substr(responder, 14), '.' || substr(responder, 14)))),
	CONSTRAINT uq_resolutions_message UNIQUE (tenant, environment, message_id),
	CONSTRAINT ck_resolutions_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TRIGGER tr_resolutions_no_update BEFORE UPDATE ON resolutions FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'tr_resolutions_no_update'); END

CREATE TRIGGER tr_resolutions_no_delete BEFORE DELETE ON resolutions FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'tr_resolutions_no_delete'); END

CREATE TABLE wait_log (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	wait_id TEXT NOT NULL,
	number INTEGER NOT NULL,
	at INTEGER NOT NULL,
	event TEXT NOT NULL,
	rule TEXT NOT NULL,
	"before" TEXT NOT NULL,
	"after" TEXT NOT NULL,
	cause TEXT NOT NULL,
	CONSTRAINT pk_wait_log PRIMARY KEY (tenant, environment, wait_id, number),
	CONSTRAINT fk_wait_log_wait FOREIGN KEY(tenant, environment, wait_id) REFERENCES waits (tenant, environment, id),
	CONSTRAINT ck_wait_log_environment CHECK (environment IN ('live', 'test'))
)
 STRICT

CREATE TRIGGER tr_wait_log_no_update BEFORE UPDATE ON wait_log FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'tr_wait_log_no_update'); END

CREATE TRIGGER tr_wait_log_no_delete BEFORE DELETE ON wait_log FOR EACH ROW BEGIN SELECT RAISE(ABORT, 'tr_wait_log_no_delete'); END
