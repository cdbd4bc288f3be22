"""Composing mails, read back by a second parser written here from the RFCs, and by the standard library."""

# long because: one table of hostile words for every place words can stand

from __future__ import annotations

import base64
import binascii
import quopri
import re
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.header import decode_header, make_header

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerback.channels.mail import headers, write
from answerback.errors import BadAddress, BadRequest
from answerback.model import Address, Attachment, Draft

DRAFT = Draft(
    message_id="<token.1@gw.example.net>",
    sender=Address(email="agent@gw.example.net", name="Agent of Gw"),
    to=(Address(email="pat@supplier.example", name="Pat"),),
    subject="PO 4711 delivery date",
    text="Hello Pat,\nwhen will it be delivered?\n",
    date=datetime(2026, 3, 4, 12, tzinfo=UTC),
)


def parsed(octets: bytes) -> tuple[list[tuple[str, str]], bytes]:
    """A second reader: headers in order, unfolded (RFC 5322 section 2.2.3), and the body."""
    head, _, body = octets.partition(b"\r\n\r\n")
    unfolded = re.sub(rb"\r\n(?=[ \t])", b"", head).decode()
    pairs = [line.split(":", 1) for line in unfolded.split("\r\n")]
    return [(name, value.strip()) for name, value in pairs], body


def words(value: str) -> str:
    """Decode RFC 2047 encoded words the way section 6.2 says: white space between two of them vanishes."""
    joined = re.sub(r"(=\?[^?]+\?[bB]\?[^?]*\?=)\s+(?==\?)", r"\1", value)
    return re.sub(r"=\?utf-8\?b\?([^?]*)\?=", lambda m: base64.b64decode(m[1]).decode(), joined)


def decoded(fields: dict[str, str], body: bytes) -> bytes:
    match fields["Content-Transfer-Encoding"]:
        case "base64":
            return binascii.a2b_base64(body)
        case "quoted-printable":
            return quopri.decodestring(body)
        case _:
            return body


def parts(octets: bytes) -> list[tuple[dict[str, str], bytes]]:
    """Leaves of a mail in order, decoded."""
    pairs, body = parsed(octets)
    fields = dict(pairs)
    boundary = re.search(r'boundary="([^"]+)"', fields["Content-Type"])
    if boundary is None:
        return [(fields, decoded(fields, body))]
    inner = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode())
    assert inner[0] == b""
    assert inner[-1] == b"--\r\n"
    return [leaf for piece in inner[1:-1] for leaf in parts(piece.removeprefix(b"\r\n"))]


def test_a_plain_draft_becomes_exactly_these_octets() -> None:
    assert write.compose(DRAFT) == (
        b"From: Agent of Gw <agent@gw.example.net>\r\n"
        b"To: Pat <pat@supplier.example>\r\n"
        b"Subject: PO 4711 delivery date\r\n"
        b"Date: Wed, 04 Mar 2026 12:00:00 +0000\r\n"
        b"MIME-Version: 1.0\r\n"
        b'Content-Type: text/plain; charset="utf-8"\r\n'
        b"Content-Transfer-Encoding: 7bit\r\n"
        b"Message-ID: <token.1@gw.example.net>\r\n"
        b"\r\n"
        b"Hello Pat,\r\nwhen will it be delivered?\r\n"
    )


def test_every_field_of_a_draft_has_its_header() -> None:
    draft = replace(
        DRAFT,
        cc=(Address(email="a@x.example", name='Li, "Q"'), Address(email="b@x.example")),
        reply_to="agent+t0k@gw.example.net",
        in_reply_to="<parent@x.example>",
        references=("<root@x.example>", "<parent@x.example>"),
        auto_submitted="auto-generated",
    )
    pairs, _ = parsed(write.compose(draft))
    assert pairs == [
        ("From", "Agent of Gw <agent@gw.example.net>"),
        ("To", "Pat <pat@supplier.example>"),
        ("Cc", '"Li, \\"Q\\"" <a@x.example>, b@x.example'),
        ("Reply-To", "agent+t0k@gw.example.net"),
        ("Subject", "PO 4711 delivery date"),
        ("Date", "Wed, 04 Mar 2026 12:00:00 +0000"),
        ("Auto-Submitted", "auto-generated"),
        ("MIME-Version", "1.0"),
        ("Content-Type", 'text/plain; charset="utf-8"'),
        ("Content-Transfer-Encoding", "7bit"),
        ("Message-ID", "<token.1@gw.example.net>"),
        ("In-Reply-To", "<parent@x.example>"),
        ("References", "<root@x.example> <parent@x.example>"),
    ]


HOSTILE = [
    "x\nBcc: victim@evil.example",
    "x\r\nBcc: victim@evil.example",
    "x\rBcc: victim@evil.example",
    "é\nBcc: victim@evil.example",
    "é\r\n\r\n<script>body</script>",
    "=?utf-8?q?x=0ABcc:_victim@evil.example?=",
    "=?utf-8?b?eApCY2M6IHZpY3RpbUBldmlsLmV4YW1wbGU=?=",
    "\n",
    "x\x0bBcc: v@evil.example",
    "x\x0cBcc: v@evil.example",
    "x\x85Bcc: v@evil.example",
    "x\u2028Bcc: v@evil.example",
    "x\u2029Bcc: v@evil.example",
    "x\0Bcc: v@evil.example",
    "x\x1b[2JBcc: v@evil.example",
    "x\ud800Bcc: v@evil.example",
    '" <victim@evil.example>, "',
    "a\\",
    "x\n Bcc: v@evil.example",
    "Bcc: v@evil.example\n\nbody",
    "y" * 3000,
    "ü" * 3000,
    "x " * 2000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_subject_or_name_makes_no_header_and_reads_back_as_the_same_words(text: str) -> None:
    draft = replace(DRAFT, subject=text, sender=Address(email="agent@gw.example.net", name=text))
    octets = write.compose(draft)
    pairs, _ = parsed(octets)
    names = [
        "From",
        "To",
        "Subject",
        "Date",
        "MIME-Version",
        "Content-Type",
        "Content-Transfer-Encoding",
        "Message-ID",
    ]
    assert [name for name, _ in pairs] == names
    assert list(message_from_bytes(octets).keys()) == names
    assert octets.count(b"\n") == octets.count(b"\r") == octets.count(b"\r\n")
    meant = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", " ", text).strip()
    assert words(dict(pairs)["Subject"]) == meant
    stdlib = str(make_header(decode_header(message_from_bytes(octets)["Subject"])))
    assert re.sub(r"\s+", " ", stdlib).strip() == re.sub(r"\s+", " ", meant)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_stays_one_mailbox(text: str) -> None:
    person = Address(email="agent@gw.example.net", name=text)
    pairs, _ = parsed(write.compose(replace(DRAFT, to=(person,))))
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", dict(pairs)["To"])
    assert re.findall(r"[<,>@]", bare) in (["<", "@", ">"], ["@"])
    assert bare.endswith("agent@gw.example.net>") or bare == "agent@gw.example.net"


@pytest.mark.parametrize(
    "email",
    [
        "a@b.example\nBcc: x@y.example",
        "a@b.example>, <c@d.example",
        "a b@c.example",
        "",
        "nobody",
        "a@b@c.example",
        'a"b@c.example',
        "a@\x00.example",
    ],
)
def test_an_address_that_could_change_the_header_is_refused(email: str) -> None:
    with pytest.raises(BadAddress):
        write.compose(replace(DRAFT, to=(Address(email=email),)))


def test_the_second_check_refuses_a_value_that_makes_its_own_header() -> None:
    with pytest.raises(BadRequest):
        headers.block([("Subject", "x\r\nBcc: victim@evil.example")])
    with pytest.raises(BadRequest):
        headers.block([("Subject", "x\nBcc: victim@evil.example")])
    with pytest.raises(BadRequest):
        headers.block([("Subject", "x\r\n\r\nbody")])
    with pytest.raises(BadRequest):
        headers.block([("Subject", "x" * 1200)])


@pytest.mark.parametrize(
    "octets",
    [b"A: b", b"A b\r\n\r\n", b" A: b\r\n\r\n", b"\r\n\r\n", b"A: b\0\r\n\r\n", b"A: b\r\n \r\n\r\n"],
)
def test_the_strict_reader_refuses_what_other_readers_guess_about(octets: bytes) -> None:
    with pytest.raises(BadRequest):
        headers.names(octets)


def test_ids_of_any_length_are_written_whole_and_never_encoded() -> None:
    long = tuple(f"<{'a' * size}.{number}@h.example>" for number, size in enumerate([40, 78, 200, 500, 900]))
    draft = replace(DRAFT, message_id=f"<{'t' * 90}@gw.example.net>", in_reply_to=long[-1], references=long)
    octets = write.compose(draft)
    fields = dict(parsed(octets)[0])
    assert b"=?" not in octets
    assert fields["Message-ID"] == draft.message_id
    assert fields["In-Reply-To"] == long[-1]
    assert tuple(fields["References"].split()) == long
    assert all(octets.count(each.encode()) >= 1 for each in long)
    assert max(len(line) for line in octets.split(b"\r\n")) <= 998


def test_the_longest_id_starts_on_a_line_of_its_own() -> None:
    longest = f"<{'a' * 985}@h.example>"[:994] + ">"
    octets = write.compose(replace(DRAFT, in_reply_to=longest, references=(longest,)))
    fields = dict(parsed(octets)[0])
    assert (fields["In-Reply-To"], fields["References"]) == (longest, longest)


@pytest.mark.parametrize(
    "foreign", ["", "no brackets@x", "<a b@x>", "<a\r\nX: y@x>", "<é@x>", f"<{'a' * 1000}@x>", "<a<b@x>"]
)
def test_an_id_nobody_can_write_is_left_out(foreign: str) -> None:
    octets = write.compose(replace(DRAFT, in_reply_to=foreign, references=("<root@x.example>", foreign)))
    fields = dict(parsed(octets)[0])
    assert fields["References"] == "<root@x.example>"
    assert "In-Reply-To" not in fields


def test_our_own_id_must_be_one() -> None:
    with pytest.raises(BadRequest):
        write.compose(replace(DRAFT, message_id="token"))


def test_a_chain_keeps_the_first_the_newest_48_and_the_parent() -> None:
    ids = [f"<{number}@x>" for number in range(120)]
    assert write.chain(ids, "<p@x>") == (ids[0], *ids[-48:], "<p@x>")
    assert write.chain(ids[:49], "<p@x>") == (*ids[:49], "<p@x>")
    assert write.chain([], "<p@x>") == ("<p@x>",)
    assert write.chain(["<a@x>", "<p@x>", "<a@x>", "<b@x>"], "<p@x>") == ("<a@x>", "<b@x>", "<p@x>")
    assert write.chain(["<a@x>"], "") == ("<a@x>",)


def test_a_draft_with_a_longer_chain_is_cut_to_fifty() -> None:
    ids = tuple(f"<{number}@x>" for number in range(80))
    fields = dict(parsed(write.compose(replace(DRAFT, references=ids)))[0])
    assert tuple(fields["References"].split()) == (ids[0], *ids[31:79], ids[79])


TEXTS = [
    "",
    "no newline at the end",
    "\n",
    "From here\n.\n..dots\nFrom there\n",
    "trailing space \nand tab\t\n",
    "mac\rold\r\nmixed\n",
    "word " * 1000,
    "x" * 5000,
    "é" * 5000,
    "漢字" * 2000 + "\n",
    "--=_mixed_ boundary look-alike\n",
    "a=b=20\n",
    "\x00\x0b\x0c\x85\u2028 odd separators",
    "emoji 👩‍👩‍👧 and \u202e bidi\n",
    "From",
    ".",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", ["plain", "alternative", "mixed"])
def test_any_text_decodes_to_itself_in_lines_of_78(text: str, kind: str) -> None:
    files = (Attachment(filename="a.bin", media_type="application/x-a", content=b"\0\r\n.\r\n"),)
    draft = replace(DRAFT, text=text)
    match kind:
        case "alternative":
            draft = replace(draft, html=text)
        case "mixed":
            draft = replace(draft, html=text, attachments=files)
    octets = write.compose(draft)
    expected = re.sub(r"\r\n|\r|\n", "\r\n", text).encode()
    leaves = [content for _, content in parts(octets)]
    assert leaves == [
        expected,
        *([expected] if draft.html is not None else []),
        *(file.content for file in draft.attachments),
    ]
    stdlib = [
        part.get_payload(decode=True) for part in message_from_bytes(octets).walk() if not part.is_multipart()
    ]
    assert stdlib == leaves
    assert max(len(line) for line in octets.split(b"\r\n")) <= 78
    assert not re.search(rb"(?m)^(From |\.)", octets.partition(b"\r\n\r\n")[2])


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    subject=st.text(max_size=200),
    name=st.text(max_size=120),
)
def test_words_survive_whatever_they_are(text: str, subject: str, name: str) -> None:
    octets = write.compose(
        replace(DRAFT, text=text, subject=subject, sender=replace(DRAFT.sender, name=name))
    )
    pairs, _ = parsed(octets)
    assert words(dict(pairs)["Subject"]) == headers.clean(subject)
    assert [content for _, content in parts(octets)] == [re.sub(r"\r\n|\r|\n", "\r\n", text).encode()]
    assert max(len(line) for line in octets.split(b"\r\n")) <= 998
    assert octets.isascii()


def test_a_lone_surrogate_in_the_text_is_refused() -> None:
    with pytest.raises(BadRequest):
        write.compose(replace(DRAFT, text="\ud800"))


def test_a_draft_without_recipients_or_zone_is_refused() -> None:
    with pytest.raises(BadRequest):
        write.compose(replace(DRAFT, to=()))
    with pytest.raises(BadRequest):
        write.compose(replace(DRAFT, date=datetime(2026, 3, 4, 12)))  # noqa: DTZ001 - that is what is refused


@pytest.mark.parametrize(
    ("filename", "kind", "read_as", "read_kind"),
    [
        ("offer.pdf", "application/pdf", "offer.pdf", "application/pdf"),
        ("Angebot für Pat.pdf", "Application/PDF", "Angebot für Pat.pdf", "application/pdf"),
        ("見積" * 60 + ".xlsx", "application/x", "見積" * 60 + ".xlsx", "application/x"),
        ("a" * 150 + ".txt", "text/plain", "a" * 150 + ".txt", "text/plain"),
        ('q"uo\\te.txt', "text/plain", "te.txt", "text/plain"),
        ("../../etc/passwd", "x\r\nX: y", "passwd", "application/octet-stream"),
        ("x\r\nX-Evil: 1", "message/rfc822", "x  X-Evil: 1", "application/octet-stream"),
        ("", "", "attachment", "application/octet-stream"),
        ("100%.txt", "text/plain", "100%.txt", "text/plain"),
    ],
)
def test_an_attachment_arrives_with_its_name(filename: str, kind: str, read_as: str, read_kind: str) -> None:
    file = Attachment(filename=filename, media_type=kind, content=bytes(range(256)))
    mail = message_from_bytes(write.compose(replace(DRAFT, attachments=(file,))))
    part = mail.get_payload()[1]  # type: ignore[index]
    assert part.get_filename() == read_as  # type: ignore[union-attr]
    assert part.get_content_type() == read_kind  # type: ignore[union-attr]
    assert part.get_payload(decode=True) == file.content  # type: ignore[union-attr]


def test_only_a_local_part_makes_headers_non_ascii() -> None:
    idn = write.compose(replace(DRAFT, to=(Address(email="pat@bücher.example", name="Pät"),)))
    assert idn.isascii()
    assert b"<pat@xn--bcher-kva.example>" in idn
    local = write.compose(replace(DRAFT, to=(Address(email="jürgen@bücher.example"),)))
    assert "To: jürgen@xn--bcher-kva.example\r\n".encode() in local


def test_composing_twice_gives_the_same_octets() -> None:
    draft = replace(
        DRAFT, html="<p>x</p>", attachments=(Attachment(filename="a", media_type="b/c", content=b"d"),)
    )
    assert write.compose(draft) == write.compose(draft)
