CREATE TABLE tenants (
	tenant TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_tenants PRIMARY KEY (tenant)
)

CREATE TABLE contents (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	octets BYTEA NOT NULL,
	CONSTRAINT pk_contents PRIMARY KEY (tenant, environment, sha256),
	CONSTRAINT fk_contents_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_contents_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE mailboxes (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	principal TEXT NOT NULL,
	last_sequence BIGINT NOT NULL,
	CONSTRAINT pk_mailboxes PRIMARY KEY (tenant, environment, principal),
	CONSTRAINT fk_mailboxes_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_mailboxes_last_sequence CHECK (last_sequence >= 0),
	CONSTRAINT ck_mailboxes_environment CHECK (environment IN ('live', 'test'))
)

CREATE FUNCTION tr_mailboxes_counter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.last_sequence NOT IN (OLD.last_sequence, OLD.last_sequence + 1) THEN RAISE EXCEPTION 'tr_mailboxes_counter' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_mailboxes_counter', TABLE = 'mailboxes'; END IF; RETURN NEW; END $$

CREATE TRIGGER tr_mailboxes_counter BEFORE UPDATE ON mailboxes FOR EACH ROW EXECUTE FUNCTION tr_mailboxes_counter()

CREATE TABLE idempotency (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	owner TEXT NOT NULL,
	key TEXT NOT NULL,
	digest TEXT NOT NULL,
	at BIGINT NOT NULL,
	status BIGINT,
	body TEXT,
	CONSTRAINT pk_idempotency PRIMARY KEY (tenant, environment, owner, key),
	CONSTRAINT fk_idempotency_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_idempotency_finished CHECK ((status IS NULL) = (body IS NULL)),
	CONSTRAINT ck_idempotency_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE agents (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	owner TEXT NOT NULL,
	identity_ref TEXT NOT NULL,
	state TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_agents PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_agents_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_agents_state CHECK (state IN ('active', 'suspended', 'deleted')),
	CONSTRAINT uq_agents_name UNIQUE (tenant, environment, name),
	CONSTRAINT ck_agents_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE contacts (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	zone TEXT NOT NULL,
	country TEXT NOT NULL,
	hours TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_contacts PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_contacts_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_contacts_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE suppressions (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	channel TEXT NOT NULL,
	folded TEXT NOT NULL,
	address TEXT NOT NULL,
	reason TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_suppressions PRIMARY KEY (tenant, environment, channel, folded),
	CONSTRAINT fk_suppressions_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_suppressions_reason CHECK (reason IN ('bounce', 'complaint', 'opt_out', 'manual')),
	CONSTRAINT ck_suppressions_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE counters (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	name TEXT NOT NULL,
	total BIGINT NOT NULL,
	CONSTRAINT pk_counters PRIMARY KEY (tenant, environment, name),
	CONSTRAINT fk_counters_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_counters_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE schedules (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	name TEXT NOT NULL,
	version BIGINT NOT NULL,
	policy TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_schedules PRIMARY KEY (tenant, environment, name, version),
	CONSTRAINT fk_schedules_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT ck_schedules_version CHECK (version >= 1),
	CONSTRAINT ck_schedules_environment CHECK (environment IN ('live', 'test'))
)

CREATE FUNCTION tr_schedules_no_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_schedules_no_update' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_schedules_no_update', TABLE = 'schedules'; RETURN NEW; END $$

CREATE TRIGGER tr_schedules_no_update BEFORE UPDATE ON schedules FOR EACH ROW EXECUTE FUNCTION tr_schedules_no_update()

CREATE FUNCTION tr_schedules_no_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_schedules_no_delete' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_schedules_no_delete', TABLE = 'schedules'; RETURN OLD; END $$

CREATE TRIGGER tr_schedules_no_delete BEFORE DELETE ON schedules FOR EACH ROW EXECUTE FUNCTION tr_schedules_no_delete()

CREATE FUNCTION tr_schedules_no_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_schedules_no_truncate' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_schedules_no_truncate', TABLE = 'schedules'; RETURN NEW; END $$

CREATE TRIGGER tr_schedules_no_truncate BEFORE TRUNCATE ON schedules FOR EACH STATEMENT EXECUTE FUNCTION tr_schedules_no_truncate()

CREATE TABLE mailbox_items (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	principal TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	event_id TEXT NOT NULL,
	type TEXT NOT NULL,
	at BIGINT NOT NULL,
	state TEXT NOT NULL,
	attempts BIGINT NOT NULL,
	lease_id TEXT,
	lease_until BIGINT,
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

CREATE INDEX ix_mailbox_items_pending ON mailbox_items (tenant, environment, principal, sequence) WHERE state IN ('ready', 'leased')

CREATE FUNCTION tr_mailbox_items_counter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.sequence <> coalesce((SELECT last_sequence FROM mailboxes WHERE tenant = NEW.tenant AND environment = NEW.environment AND principal = NEW.principal), 0) THEN RAISE EXCEPTION 'tr_mailbox_items_counter' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_mailbox_items_counter', TABLE = 'mailbox_items'; END IF; RETURN NEW; END $$

CREATE TRIGGER tr_mailbox_items_counter BEFORE INSERT ON mailbox_items FOR EACH ROW EXECUTE FUNCTION tr_mailbox_items_counter()

CREATE TABLE inboxes (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	channel TEXT NOT NULL,
	address TEXT NOT NULL,
	folded TEXT NOT NULL,
	display_name TEXT NOT NULL,
	sub_addresses BIGINT NOT NULL,
	external TEXT NOT NULL,
	zone TEXT NOT NULL,
	country TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_inboxes PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_inboxes_agent FOREIGN KEY(tenant, environment, agent_id) REFERENCES agents (tenant, environment, id),
	CONSTRAINT ck_inboxes_external CHECK (external IN ('refuse', 'verified', 'all')),
	CONSTRAINT ck_inboxes_sub_addresses CHECK (sub_addresses IN (0, 1)),
	CONSTRAINT uq_inboxes_address UNIQUE (tenant, environment, channel, folded),
	CONSTRAINT ck_inboxes_environment CHECK (environment IN ('live', 'test'))
)

CREATE UNIQUE INDEX ux_inboxes_live_address ON inboxes (channel, folded) WHERE environment = 'live'

CREATE TABLE contact_addresses (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	channel TEXT NOT NULL,
	folded TEXT NOT NULL,
	contact_id TEXT NOT NULL,
	address TEXT NOT NULL,
	position BIGINT NOT NULL,
	CONSTRAINT pk_contact_addresses PRIMARY KEY (tenant, environment, channel, folded),
	CONSTRAINT fk_contact_addresses_contact FOREIGN KEY(tenant, environment, contact_id) REFERENCES contacts (tenant, environment, id),
	CONSTRAINT ck_contact_addresses_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE api_keys (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	name TEXT NOT NULL,
	scopes TEXT NOT NULL,
	agent_id TEXT,
	created_at BIGINT NOT NULL,
	revoked_at BIGINT,
	CONSTRAINT pk_api_keys PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_api_keys_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT fk_api_keys_agent FOREIGN KEY(tenant, environment, agent_id) REFERENCES agents (tenant, environment, id),
	CONSTRAINT uq_api_keys_sha256 UNIQUE (sha256),
	CONSTRAINT ck_api_keys_environment CHECK (environment IN ('live', 'test'))
)

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
	at BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	state TEXT NOT NULL,
	note TEXT NOT NULL,
	message_id TEXT,
	deferred_until BIGINT,
	CONSTRAINT pk_received PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_received_tenant FOREIGN KEY(tenant) REFERENCES tenants (tenant),
	CONSTRAINT fk_received_inbox FOREIGN KEY(tenant, environment, inbox_ref) REFERENCES inboxes (tenant, environment, id),
	CONSTRAINT ck_received_state CHECK (state IN ('stored', 'processed', 'review', 'dropped')),
	CONSTRAINT uq_received_identity UNIQUE (tenant, environment, inbox_id, identity),
	CONSTRAINT ck_received_environment CHECK (environment IN ('live', 'test'))
)

CREATE INDEX ix_received_stored ON received (at, id) WHERE state = 'stored'

CREATE TABLE conversations (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	inbox_id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	channel TEXT NOT NULL,
	subject TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_conversations PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_conversations_inbox FOREIGN KEY(tenant, environment, inbox_id) REFERENCES inboxes (tenant, environment, id),
	CONSTRAINT fk_conversations_agent FOREIGN KEY(tenant, environment, agent_id) REFERENCES agents (tenant, environment, id),
	CONSTRAINT ck_conversations_environment CHECK (environment IN ('live', 'test'))
)

CREATE INDEX ix_conversations_newest ON conversations (tenant, environment, created_at, id)

CREATE TABLE received_octets (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	received_id TEXT NOT NULL,
	octets BYTEA NOT NULL,
	CONSTRAINT pk_received_octets PRIMARY KEY (tenant, environment, received_id),
	CONSTRAINT fk_received_octets_received FOREIGN KEY(tenant, environment, received_id) REFERENCES received (tenant, environment, id),
	CONSTRAINT ck_received_octets_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE messages (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	conversation_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	direction TEXT NOT NULL,
	kind TEXT NOT NULL,
	subject TEXT NOT NULL,
	sender_email TEXT NOT NULL,
	sender_name TEXT NOT NULL,
	at BIGINT NOT NULL,
	rfc_id TEXT NOT NULL,
	parent_id TEXT,
	trust TEXT,
	body_hash TEXT NOT NULL,
	received_id TEXT,
	wait_id TEXT,
	nudge_number BIGINT,
	content TEXT NOT NULL,
	CONSTRAINT pk_messages PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_messages_conversation FOREIGN KEY(tenant, environment, conversation_id) REFERENCES conversations (tenant, environment, id),
	CONSTRAINT fk_messages_parent FOREIGN KEY(tenant, environment, parent_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT fk_messages_received FOREIGN KEY(tenant, environment, received_id) REFERENCES received (tenant, environment, id),
	CONSTRAINT ck_messages_direction CHECK (direction IN ('in', 'out')),
	CONSTRAINT ck_messages_trust CHECK (trust IN ('authenticated', 'unauthenticated', 'spam', 'blocked')),
	CONSTRAINT ck_messages_nudge CHECK (nudge_number IS NULL OR (nudge_number >= 1 AND kind = 'nudge' AND wait_id IS NOT NULL)),
	CONSTRAINT ck_messages_environment CHECK (environment IN ('live', 'test'))
)

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

CREATE TABLE outbox (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	message_id TEXT NOT NULL,
	recipient TEXT NOT NULL,
	state TEXT NOT NULL,
	attempts BIGINT NOT NULL,
	queued_at BIGINT NOT NULL,
	next_attempt_at BIGINT,
	recorded_at BIGINT,
	code BIGINT NOT NULL,
	text TEXT NOT NULL,
	reported TEXT NOT NULL,
	reported_at BIGINT,
	wait_id TEXT,
	owner TEXT,
	lease_until BIGINT,
	CONSTRAINT pk_outbox PRIMARY KEY (tenant, environment, message_id, recipient),
	CONSTRAINT fk_outbox_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT ck_outbox_state CHECK (state IN ('queued', 'handing_over', 'sent', 'deferred', 'failed', 'unknown', 'withdrawn')),
	CONSTRAINT ck_outbox_next_attempt CHECK ((state IN ('queued', 'deferred')) = (next_attempt_at IS NOT NULL)),
	CONSTRAINT ck_outbox_lease CHECK ((state = 'handing_over') = (owner IS NOT NULL AND lease_until IS NOT NULL)),
	CONSTRAINT ck_outbox_environment CHECK (environment IN ('live', 'test'))
)

CREATE INDEX ix_outbox_wait ON outbox (tenant, environment, wait_id)

CREATE INDEX ix_outbox_lease ON outbox (lease_until) WHERE lease_until IS NOT NULL

CREATE INDEX ix_outbox_next_attempt ON outbox (next_attempt_at, message_id) WHERE next_attempt_at IS NOT NULL

CREATE FUNCTION tr_outbox_sent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.state = 'sent' AND NEW.state <> 'sent' THEN RAISE EXCEPTION 'tr_outbox_sent' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_outbox_sent', TABLE = 'outbox'; END IF; RETURN NEW; END $$

CREATE TRIGGER tr_outbox_sent BEFORE UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION tr_outbox_sent()

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
	opened_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	subject_digest TEXT NOT NULL,
	min_trust TEXT NOT NULL,
	follows TEXT,
	closed_at BIGINT,
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

CREATE UNIQUE INDEX ux_waitpoints_open_key ON waitpoints (tenant, environment, event_type, correlation_key) WHERE state IN ('open', 'stalled')

CREATE INDEX ix_waitpoints_conversation ON waitpoints (tenant, environment, conversation_id)

CREATE INDEX ix_waitpoints_key ON waitpoints (tenant, environment, correlation_key, event_type)

CREATE INDEX ix_waitpoints_expiry ON waitpoints (expires_at, id) WHERE state IN ('open', 'stalled')

CREATE FUNCTION tr_waitpoints_ended() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.state IN ('resolved', 'expired', 'cancelled') THEN RAISE EXCEPTION 'tr_waitpoints_ended' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_waitpoints_ended', TABLE = 'waitpoints'; END IF; RETURN NEW; END $$

CREATE TRIGGER tr_waitpoints_ended BEFORE UPDATE ON waitpoints FOR EACH ROW EXECUTE FUNCTION tr_waitpoints_ended()

CREATE FUNCTION tr_waitpoints_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.state = 'resolved' THEN RAISE EXCEPTION 'tr_waitpoints_kept' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_waitpoints_kept', TABLE = 'waitpoints'; END IF; RETURN OLD; END $$

CREATE TRIGGER tr_waitpoints_kept BEFORE DELETE ON waitpoints FOR EACH ROW EXECUTE FUNCTION tr_waitpoints_kept()

CREATE FUNCTION tr_waitpoints_expires_at() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.expires_at <> OLD.expires_at OR NEW.opened_at <> OLD.opened_at THEN RAISE EXCEPTION 'tr_waitpoints_expires_at' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_waitpoints_expires_at', TABLE = 'waitpoints'; END IF; RETURN NEW; END $$

CREATE TRIGGER tr_waitpoints_expires_at BEFORE UPDATE ON waitpoints FOR EACH ROW EXECUTE FUNCTION tr_waitpoints_expires_at()

CREATE TABLE responders (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	waitpoint_id TEXT NOT NULL,
	responder TEXT NOT NULL,
	position BIGINT NOT NULL,
	CONSTRAINT pk_responders PRIMARY KEY (tenant, environment, waitpoint_id, responder),
	CONSTRAINT fk_responders_waitpoint FOREIGN KEY(tenant, environment, waitpoint_id) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT ck_responders_environment CHECK (environment IN ('live', 'test'))
)

CREATE TABLE rejections (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	waitpoint_id TEXT NOT NULL,
	message_id TEXT NOT NULL,
	reason TEXT NOT NULL,
	digest TEXT NOT NULL,
	at BIGINT NOT NULL,
	CONSTRAINT pk_rejections PRIMARY KEY (tenant, environment, waitpoint_id, message_id, reason),
	CONSTRAINT fk_rejections_waitpoint FOREIGN KEY(tenant, environment, waitpoint_id) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT fk_rejections_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id),
	CONSTRAINT ck_rejections_environment CHECK (environment IN ('live', 'test'))
)

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

CREATE TABLE waits (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	number BIGINT NOT NULL,
	conversation_id TEXT NOT NULL,
	waitpoint_id TEXT,
	schedule_name TEXT NOT NULL,
	schedule_version BIGINT NOT NULL,
	state TEXT NOT NULL,
	reason TEXT NOT NULL,
	due_at BIGINT,
	updated_at BIGINT NOT NULL,
	details TEXT NOT NULL,
	CONSTRAINT pk_waits PRIMARY KEY (tenant, environment, id),
	CONSTRAINT fk_waits_conversation FOREIGN KEY(tenant, environment, conversation_id) REFERENCES conversations (tenant, environment, id),
	CONSTRAINT fk_waits_waitpoint FOREIGN KEY(tenant, environment, waitpoint_id) REFERENCES waitpoints (tenant, environment, id),
	CONSTRAINT fk_waits_schedule FOREIGN KEY(tenant, environment, schedule_name, schedule_version) REFERENCES schedules (tenant, environment, name, version),
	CONSTRAINT ck_waits_state CHECK (state IN ('waiting', 'nudged', 'paused', 'replied', 'abandoned', 'cancelled')),
	CONSTRAINT ck_waits_running CHECK ((state IN ('waiting', 'nudged')) = (due_at IS NOT NULL)),
	CONSTRAINT ck_waits_environment CHECK (environment IN ('live', 'test'))
)

CREATE INDEX ix_waits_due ON waits (due_at, id) WHERE due_at IS NOT NULL

CREATE INDEX ix_waits_waitpoint ON waits (tenant, environment, waitpoint_id)

CREATE INDEX ix_waits_conversation ON waits (tenant, environment, conversation_id, number)

CREATE TABLE reviews (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	id TEXT NOT NULL,
	reason TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	conversation_id TEXT,
	message_id TEXT,
	received_id TEXT,
	wait_id TEXT,
	decision TEXT,
	decided_by TEXT,
	decided_at BIGINT,
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
	responded_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
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

CREATE FUNCTION tr_resolutions_no_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_resolutions_no_update' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_resolutions_no_update', TABLE = 'resolutions'; RETURN NEW; END $$

CREATE TRIGGER tr_resolutions_no_update BEFORE UPDATE ON resolutions FOR EACH ROW EXECUTE FUNCTION tr_resolutions_no_update()

CREATE FUNCTION tr_resolutions_no_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_resolutions_no_delete' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_resolutions_no_delete', TABLE = 'resolutions'; RETURN OLD; END $$

CREATE TRIGGER tr_resolutions_no_delete BEFORE DELETE ON resolutions FOR EACH ROW EXECUTE FUNCTION tr_resolutions_no_delete()

CREATE FUNCTION tr_resolutions_no_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_resolutions_no_truncate' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_resolutions_no_truncate', TABLE = 'resolutions'; RETURN NEW; END $$

CREATE TRIGGER tr_resolutions_no_truncate BEFORE TRUNCATE ON resolutions FOR EACH STATEMENT EXECUTE FUNCTION tr_resolutions_no_truncate()

CREATE TABLE wait_log (
	tenant TEXT NOT NULL,
	environment TEXT NOT NULL,
	wait_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	at BIGINT NOT NULL,
	event TEXT NOT NULL,
	rule TEXT NOT NULL,
	before TEXT NOT NULL,
	after TEXT NOT NULL,
	cause TEXT NOT NULL,
	CONSTRAINT pk_wait_log PRIMARY KEY (tenant, environment, wait_id, number),
	CONSTRAINT fk_wait_log_wait FOREIGN KEY(tenant, environment, wait_id) REFERENCES waits (tenant, environment, id),
	CONSTRAINT ck_wait_log_environment CHECK (environment IN ('live', 'test'))
)

CREATE FUNCTION tr_wait_log_no_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_wait_log_no_update' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_wait_log_no_update', TABLE = 'wait_log'; RETURN NEW; END $$

CREATE TRIGGER tr_wait_log_no_update BEFORE UPDATE ON wait_log FOR EACH ROW EXECUTE FUNCTION tr_wait_log_no_update()

CREATE FUNCTION tr_wait_log_no_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_wait_log_no_delete' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_wait_log_no_delete', TABLE = 'wait_log'; RETURN OLD; END $$

CREATE TRIGGER tr_wait_log_no_delete BEFORE DELETE ON wait_log FOR EACH ROW EXECUTE FUNCTION tr_wait_log_no_delete()

CREATE FUNCTION tr_wait_log_no_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'tr_wait_log_no_truncate' USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'tr_wait_log_no_truncate', TABLE = 'wait_log'; RETURN NEW; END $$

CREATE TRIGGER tr_wait_log_no_truncate BEFORE TRUNCATE ON wait_log FOR EACH STATEMENT EXECUTE FUNCTION tr_wait_log_no_truncate()

ALTER TABLE received ADD CONSTRAINT fk_received_message FOREIGN KEY(tenant, environment, message_id) REFERENCES messages (tenant, environment, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE outbox ADD CONSTRAINT fk_outbox_wait FOREIGN KEY(tenant, environment, wait_id) REFERENCES waits (tenant, environment, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE messages ADD CONSTRAINT fk_messages_wait FOREIGN KEY(tenant, environment, wait_id) REFERENCES waits (tenant, environment, id) DEFERRABLE INITIALLY DEFERRED
