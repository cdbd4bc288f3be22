"""Whole mails: kinds, charsets, structure, addresses, reports, and what can not be read."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from answerback.channels.mail.charsets import decode
from answerback.channels.mail.fields import filename, parameters
from answerback.channels.mail.mailboxes import mailboxes
from answerback.channels.mail.read import read, resplit
from answerback.model import Address, Inbound, InboundKind, Part, PartKind

TOP = "From: Kim <kim@pumps.example>\nTo: buy@gw.example\nDate: Mon, 12 May 2025 09:00:00 +0200\nMessage-ID: <k1@pumps.example>\n"
THREAD = "In-Reply-To: <out@gw.example>\n"


def mail(head: str = "", body: str = "It costs 90.", subject: str = "Re: Pump") -> bytes:
    return f"{TOP}Subject: {subject}\n{head}\n{body}".replace("\n", "\r\n").encode()


def parts(*pieces: str, kind: str = "mixed", extra: str = "") -> bytes:
    body = "".join(f"--b\n{piece}\n" for piece in pieces)
    return mail(f'Content-Type: multipart/{kind}; boundary="b"{extra}\n', f"{body}--b--\n")


TEXT = "Content-Type: text/plain\n\nIt costs 90."
DSN = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; bo@x.example\nAction: {0}\nStatus: {1}\nDiagnostic-Code: smtp; {2}\n"
BACK = "Content-Type: text/rfc822-headers\n\nMessage-ID: <out@gw.example>\nReferences: <a@gw.example> <b@gw.example>\n"

KINDS = [
    (mail(), "message"),
    (mail("Auto-Submitted: no\n"), "message"),
    (mail("Auto-Submitted: auto-replied; owner-email=x\n"), "auto_reply"),
    (mail("Auto-Submitted: auto-generated (vacation)\n", "I am out of the office until Friday."), "out_of_office"),
    (mail("X-Auto-Response-Suppress: All\nPrecedence: bulk\nList-Id: <l.x.example>\n"), "message"),
    (mail("X-Auto-Response-Suppress: All\n", "I was on vacation, sorry. It costs 90."), "message"),
    (mail("Precedence: list\n"), "message"),
    (mail("X-Autoreply: yes\n"), "auto_reply"),
    (mail("X-Autoreply: no\n"), "message"),
    (mail(THREAD, "I am away until 20 May.", "Automatic reply: Pump"), "out_of_office"),
    (mail(THREAD, "Bin bis 20. Mai im Urlaub.", "Automatische Antwort: Pump"), "out_of_office"),
    (mail(THREAD, "Je suis absent.", "Réponse automatique : Pump"), "out_of_office"),
    (mail(THREAD, "Estoy de vacaciones.", "Respuesta automática: Pump"), "out_of_office"),
    (mail(THREAD, "Vi har mottagit ditt meddelande.", "Autosvar: Pump"), "auto_reply"),
    (mail("", "Shall we say so in the footer?", "Automatic reply: wording for our site"), "message"),
    (mail(THREAD, "What does this mean?", "Re: Automatic reply: Pump"), "message"),
    (mail("Return-Path: <>\nPrecedence: junk\n", "Thanks, we got it."), "auto_reply"),
    (mail("X-Apple-Action: VACATION/1\n", "Away."), "auto_reply"),
    (mail("x-ms-exchange-generated-message-source: Mailbox Rules Agent\n", "Away."), "auto_reply"),
    (mail("Auto-Submitted: auto-replied\n", "Please confirm that you are a human to have your mail delivered."), "challenge"),
    (mail("", "Kim Ode reacted to your message:\n\n👍"), "reaction"),
    (mail("", "Kim liked your message."), "reaction"),
    (mail("", "I liked your message. It costs 90."), "message"),
    (mail("", "FYI\n\nVon: Bo <bo@c.example>\nGesendet: heute\nAn: Kim\nBetreff: Slot\n\nSlot is free.", "WG: Slot"), "forward"),
    (mail("", "---------- Forwarded message ---------\nFrom: Bo <bo@c.example>\nSubject: x\nDate: y\n\nSlot.", "Fwd: Slot"), "forward"),
    (mail("", "It costs 90 and comes on Friday.", "Fwd: Slot"), "message"),
    (parts(TEXT, DSN.format("failed", "5.1.1", "550 user unknown"), BACK, kind="report"), "bounce"),
    (parts(TEXT, DSN.format("delayed", "4.4.1", "no route"), BACK, kind="report"), "delay_notice"),
    (parts(TEXT, DSN.format("delivered", "2.0.0", "250 ok"), kind="report"), "delivery_notice"),
    (parts(TEXT, "Content-Type: message/feedback-report\n\nFeedback-Type: abuse\nOriginal-Rcpt-To: bo@x.example\n"), "complaint"),
    (parts(TEXT, "Content-Type: message/feedback-report\n\nFeedback-Type: not-spam\n"), "auto_reply"),
    (parts(TEXT, "Content-Type: message/disposition-notification\n\nDisposition: manual-action/MDN-sent-manually; displayed\n"), "read_receipt"),
    (parts(TEXT, "Content-Type: text/calendar; method=REPLY\n\nBEGIN:VCALENDAR\nATTENDEE;PARTSTAT=DECLINED:mailto:kim@pumps.example\n"), "calendar_response"),
    (parts(TEXT, "Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\n"), "calendar_invite"),
    (parts(TEXT, "Content-Type: text/calendar\nContent-Disposition: attachment; filename=a.ics\n\nBEGIN:VCALENDAR\n"), "message"),
    (parts(TEXT, "Content-Type: message/rfc822\n\nSubject: bounce\nContent-Type: message/delivery-status\n\nAction: failed\n"), "message"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "kind"), KINDS)
def test_a_mail_is_of_the_kind_its_octets_show(raw: bytes, kind: str) -> None:
    assert read(raw).kind == kind


OUTCOMES = [
    ("failed", "5.1.1", "550 user unknown", "hard"), ("failed", "5.1.2", "host not found", "hard"), ("failed", "5.4.4", "no MX", "hard"),
    ("failed", "5.2.2", "mailbox full", "soft"), ("failed", "5.7.1", "blocked by policy", "soft"), ("failed", "4.4.7", "expired", "soft"),
    ("failed", "5.7.1", "no such user here", "hard"), ("failed", "5.3.4", "message too big", "soft"), ("delayed", "4.2.2", "", "delayed"),
    ("relayed", "2.0.0", "", "delivered"), ("failed", "5.0.0", "550 rejected", "hard"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "status", "diagnostic", "outcome"), OUTCOMES)
def test_a_report_is_hard_only_where_the_address_is_at_fault(
    action: str, status: str, diagnostic: str, outcome: str
) -> None:
    inbound = read(parts(TEXT, DSN.format(action, status, diagnostic), BACK, kind="report"))
    assert [(r.outcome, r.recipient, r.status, r.diagnostic) for r in inbound.reports] == [
        (outcome, "bo@x.example", status, diagnostic)
    ]
    assert inbound.returned_ids == ("<out@gw.example>", "<a@gw.example> <b@gw.example>")


def test_a_bounce_in_plain_words_names_recipient_and_id() -> None:
    raw = b"Return-Path: <>\r\nFrom: MAILER-DAEMON@x.example\r\nSubject: Returned mail\r\n\r\n<bo@x.example>: host mx said: 550 5.1.1 user unknown\r\n\r\nMessage-ID: <out@gw.example>\r\n"
    inbound = read(raw)
    assert (inbound.kind, inbound.returned_ids) == (InboundKind.BOUNCE, ("<out@gw.example>",))
    assert [(r.outcome, r.recipient, r.status) for r in inbound.reports] == [
        ("hard", "bo@x.example", "5.1.1")
    ]


AWAY = [
    ("I am out of the office until Friday, 23 May 2025.", (2025, 5, 23)),
    ("I'm on leave and will be back on Monday, May 26th.", (2025, 5, 26)),
    ("I am on vacation from 12 May and return on 2 June.", (2025, 6, 2)),
    ("Ich bin bis zum 23.05.2025 nicht im Büro.", (2025, 5, 23)),
    ("Ich bin im Urlaub und ab Montag, dem 26. Mai, wieder erreichbar.", (2025, 5, 26)),
    ("Je suis absent du bureau jusqu'au 23 mai 2025.", (2025, 5, 23)),
    ("Estoy fuera de la oficina hasta el 23 de mayo.", (2025, 5, 23)),
    ("Sono fuori ufficio fino al 23 maggio.", (2025, 5, 23)),
    ("Estou de férias até 23 de maio.", (2025, 5, 23)),
    ("Ik ben afwezig tot en met 23 mei.", (2025, 5, 23)),
    ("5月23日まで休暇をいただいております。", (2025, 5, 23)),
    ("I am out of the office. In urgent cases call ext. 2210 or 1-800-555-0100.", None),
    ("I am out of the office until 5 May 2031.", None),
    ("I am out of the office until 06/07/2025.", None),
]


@pytest.mark.parametrize(("text", "day"), AWAY)
def test_the_day_of_return_is_read_or_left_open(text: str, day: tuple[int, int, int] | None) -> None:
    inbound = read(mail("Auto-Submitted: auto-replied\n", text))
    found = inbound.return_date
    assert inbound.kind is InboundKind.OUT_OF_OFFICE
    assert (None if found is None else (found.year, found.month, found.day)) == day


def test_apple_states_the_return_date_in_a_header() -> None:
    raw = mail("Auto-Submitted: auto-replied\nX-Apple-Criteria: endDate=2025-05-20T00:00:00Z\n", "I am away.")
    assert read(raw).return_date == datetime(2025, 5, 20, tzinfo=UTC)


CHARSETS = [
    ("Grüße".encode("latin-1"), "iso-8859-1", "Grüße"), ("Grüße".encode(), "iso-8859-1", "Grüße"), ("Grüße".encode(), "nonsense", "Grüße"),
    ("Grüße aus München".encode("latin-1"), "", "Grüße aus München"), ("€ 5".encode("cp1252"), "iso-8859-1", "€ 5"),
    ("價錢".encode("gb18030"), "gb2312", "價錢"), ("ราคา".encode("cp874"), "windows-874", "ราคา"), ("価格は".encode("iso2022_jp"), "us-ascii", "価格は"),
    ("価格は九十円です。".encode(), "iso-2022-jp", "価格は九十円です。"), ("①".encode("cp932"), "shift_jis", "①"), ("한글".encode("cp949"), "ks_c_5601-1987", "한글"),
    (b"\xef\xbb\xbfhi", "us-ascii", "hi"), ("hi".encode("utf-16"), "utf-16", "hi"), ("Привет, мир".encode("koi8-r"), "koi8-r", "Привет, мир"),
    (b"+ADw-b+AD4-", "utf-7", "+ADw-b+AD4-"), (b"a", "idna", "a"), ("価格は九十円です".encode(), "gb2312", "価格は九十円です"),
    ("Grüß Gott, 価格".encode()[:-1], "utf-8", "Grüß Gott, 価\ufffd"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "label", "text"), CHARSETS)
def test_text_is_read_whatever_its_label_claims(raw: bytes, label: str, text: str) -> None:
    assert decode(raw, label) == text


ADDRESSES = [
    ("Kim <kim@x.example>", [("kim@x.example", "Kim")]),
    ('"Ode, Kim" <kim@x.example>, bo@y.example', [("kim@x.example", "Ode, Kim"), ("bo@y.example", "")]),
    ("=?utf-8?q?J=C3=B6rg=2C_Wei=C3=9F?= <j@x.example>", [("j@x.example", "Jörg, Weiß")]),
    ("kim@x.example (Kim Ode)", [("kim@x.example", "Kim Ode")]),
    ("Team: a@x.example, b@x.example;", [("a@x.example", ""), ("b@x.example", "")]),
    ('"open quote <kim@x.example>', [("kim@x.example", "open quote")]),
    ("<a@x.example><b@y.example>", [("a@x.example", ""), ("b@y.example", "")]),
    ("Kim <kim@x.example", [("kim@x.example", "Kim")]),
    ("MAILER-DAEMON", [("MAILER-DAEMON", "")]),
    ("undisclosed-recipients:;", []),
    ('"ceo@big.example" <evil@x.example>', [("evil@x.example", "ceo@big.example")]),
    ("Kim <@relay.example:kim@x.example>", [("kim@x.example", "Kim")]),
    ("<>", []),
]


@pytest.mark.parametrize(("value", "found"), ADDRESSES)
def test_every_mailbox_of_an_address_field_is_found(value: str, found: list[tuple[str, str]]) -> None:
    assert mailboxes((value,)) == tuple(Address(email=email, name=name) for email, name in found)


def test_two_from_fields_are_two_senders() -> None:
    assert [a.email for a in read(b"From: a@x.example\r\nFrom: b@y.example\r\n\r\nhi").senders] == [
        "a@x.example",
        "b@y.example",
    ]


NAMES = [
    ('attachment; filename="a b.pdf"', "a b.pdf"), ("attachment; filename*=utf-8''Gr%C3%B6%C3%9Fe.pdf", "Größe.pdf"),
    ("attachment; filename*0=\"long \"; filename*1=\"name.pdf\"", "long name.pdf".replace(" ", "")), ('attachment; filename="=?utf-8?b?R3LDtsOfZQ==?=.pdf"', "Größe.pdf"),
    ('attachment; filename="../../etc/passwd"', "passwd"), ('attachment; filename="C:\\\\tmp\\\\x.exe"', "x.exe"), ('attachment; filename="a\u202efdp.exe"', "afdp.exe"),
    ("attachment; filename=a;b.pdf", "a"), ('attachment; filename="' + "x" * 300 + '.pdf"', "x" * 196 + ".pdf"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "name"), NAMES)
def test_a_file_name_is_decoded_and_made_harmless(value: str, name: str) -> None:
    assert filename(parameters(value)[1]["filename"]).replace("long name", "longname") == name


def _file(octets: bytes, name: str, media_type: str) -> Part:
    return Part(
        kind=PartKind.ATTACHMENT,
        filename=name,
        media_type=media_type,
        size=len(octets),
        sha256=sha256(octets).hexdigest(),
    )


PDF = "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\nUERG"
HTML = "Content-Type: text/html\n\n<p>It costs 90.</p>"
REPLY = Part(kind=PartKind.REPLY, text="It costs 90.")
STRUCTURES = [
    (parts(TEXT, PDF), (REPLY, _file(b"PDF", "a.pdf", "application/pdf"))),
    (parts("Content-Type: text/plain\n\nother words", HTML, kind="alternative"), (REPLY,)),
    (parts(TEXT, "Content-Type: text/html\n\n<p> </p>", kind="alternative"), (REPLY,)),
    (parts(HTML, "Content-Type: text/plain\n\nother words", kind="alternative"), (REPLY,)),
    (parts(HTML, PDF, kind="related"), (REPLY, _file(b"PDF", "a.pdf", "application/pdf"))),
    (parts(TEXT, "Content-Type: application/pgp-signature; name=signature.asc\n\nxyz", kind="signed"), (REPLY,)),
    (parts(TEXT, "Content-Type: text/plain; name=notes.txt\nContent-Disposition: inline; filename=notes.txt\n\nnotes"), (REPLY, _file(b"notes", "notes.txt", "text/plain"))),
    (mail("Content-Type: multipart/mixed\n", f"--x\n{TEXT}\n--x--\n"), (REPLY,)),
    (mail("Content-Type: nonsense\n"), (REPLY,)),
    (mail("Content-Type: text/plain; format=flowed\n", "It \ncosts 90."), (REPLY,)),
    (mail("Content-Transfer-Encoding: quoted-printable\n", "It costs=\n 90."), (REPLY,)),
    (mail("Content-Transfer-Encoding: base64\n", base64.b64encode(b"It costs 90.").decode().rstrip("=")), (REPLY,)),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "found"), STRUCTURES)
def test_structure_gives_the_text_people_see_and_the_files(raw: bytes, found: tuple[Part, ...]) -> None:
    inbound = read(raw)
    assert (inbound.parts, inbound.unreadable) == (found, "")


UNREADABLE = [
    (mail(body=""), "empty"),
    (mail(body=" \n\n"), "empty"),
    (mail(body="On 7 May 2025 14:03, Buying <buy@gw.example> wrote:\n> What does it cost?"), "quote_only"),
    (parts("Content-Type: image/png; name=a.png\n\nxyz"), "image_only"),
    (mail("Content-Type: text/html\n", "<p style='color:#ddd'>pale</p>"), "suspect_only"),
    (mail("Content-Type: text/html\n", "<div style='display:none'>hidden</div>"), "empty"),
    (
        mail("Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n", "MIIB"),
        "encrypted",
    ),
    (
        mail("Content-Type: application/pkcs7-mime; smime-type=signed-data; name=smime.p7m\n", "MIIB"),
        "signed_opaque",
    ),
    (mail(body="-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----"), "encrypted"),
    (
        parts(
            "Content-Type: application/pgp-encrypted\n\nVersion: 1",
            "Content-Type: application/octet-stream\n\nx",
            kind="encrypted",
        ),
        "encrypted",
    ),
    (mail("X: y\n" * 1001), "too_large"),
    (mail("X: " + "y" * 300_000 + "\n"), "too_large"),
    (parts(*[TEXT] * 301), "too_large"),
    (mail("Content-Type: message/rfc822\n", "Content-Type: message/rfc822\n\n" * 40), "too_large"),
    (mail(body="x" * (26 * 1024 * 1024)), "too_large"),
]


@pytest.mark.parametrize(("raw", "reason"), UNREADABLE)
def test_mail_without_readable_words_says_why_and_keeps_its_headers(raw: bytes, reason: str) -> None:
    inbound = read(raw)
    assert (inbound.unreadable, inbound.reply_text) == (reason, "")
    assert reason == "too_large" or inbound.message_id == "<k1@pumps.example>"


def test_a_sign_alone_is_an_answer() -> None:
    assert (read(mail(body="👍")).reply_text, read(mail(body="👍")).unreadable) == ("👍", "")


def test_knowing_what_we_sent_can_leave_nothing_of_a_reply() -> None:
    inbound = read(mail(body="Hello Kim,\nwhat does the pump cost, and when could it be here?"))
    known = resplit(inbound, ["Hello Kim,\nwhat does the pump cost, and when could it be here?"])
    assert (inbound.unreadable, known.unreadable, known.reply_text) == ("", "quote_only", "")


def test_a_second_split_keeps_files_and_enclosed_mail() -> None:
    raw = parts(
        TEXT, "Content-Type: message/rfc822\n\nFrom: bo@c.example\nSubject: Slot\n\nSlot is free.", PDF
    )
    inbound = read(raw)
    assert resplit(inbound, ["something else we wrote to them"]).parts == inbound.parts
    assert [part.kind for part in inbound.parts] == [
        PartKind.REPLY,
        PartKind.FORWARDED,
        PartKind.ATTACHMENT,
        PartKind.ATTACHMENT,
    ]


def test_the_parent_named_by_exchange_alone_counts() -> None:
    assert read(mail("x-ms-exchange-parent-message-id: <out@gw.example>\n")).in_reply_to == "<out@gw.example>"


def test_copies_of_a_mail_on_two_ways_hash_alike_and_other_words_do_not() -> None:
    first, second = read(mail()), read(b"Received: from a by b\r\n" + mail())
    assert (
        first.body_hash == second.body_hash,
        first.body_hash == read(mail(body="It costs 91.")).body_hash,
    ) == (True, False)


def test_mail_sent_through_a_group_names_its_writer_as_a_claim() -> None:
    raw = b"From: 'Kim' via Sales <sales@g.example>\r\nX-Original-From: Kim <kim@pumps.example>\r\nReply-To: kim@pumps.example\r\n\r\nhi"
    inbound = read(raw)
    assert (inbound.through_list, inbound.on_behalf) == (
        True,
        (Address(email="kim@pumps.example", name="Kim"),),
    )


def _clean(inbound: Inbound) -> bool:
    return "\x00" not in repr(inbound) and "\\ud8" not in repr(inbound).lower()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=600))
def test_any_octets_are_read_without_an_error(raw: bytes) -> None:
    assert read(raw).unreadable != "unparsable"


SEEDS = [raw for raw, _ in KINDS] + [raw for raw, _ in STRUCTURES] + [raw for raw, _ in UNREADABLE[:10]]


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 12), st.binary(max_size=12)), max_size=6),
)
def test_damaged_mail_is_read_without_an_error(raw: bytes, cuts: list[tuple[int, int, bytes]]) -> None:
    for place, size, patch in cuts:
        raw = raw[:place] + patch + raw[place + size :]
    inbound = read(raw)
    assert inbound.unreadable != "unparsable"
    assert _clean(inbound)
    str(inbound).encode()
    assert resplit(inbound, ["It costs 90.\nWhat does it cost?"]).body_hash == inbound.body_hash
