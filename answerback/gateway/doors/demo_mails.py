"""What the three suppliers of the demo write: an answer as a mail program sends it, and an absence note."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import formataddr, formatdate, make_msgid
from html import escape
from typing import Final

from answerback.model import value


@value
class Person:
    """One supplier: who it is, and what it does with a question."""

    address: str
    name: str
    #: what it types, one paragraph per line
    words: tuple[str, ...]
    signature: tuple[str, ...]
    #: seconds until it answers by itself at speed 1; None: only when it is told to
    after: float | None
    #: an absence note goes out at once
    away: bool = False

    @property
    def domain(self) -> str:
        """The part of the address behind @."""
        return self.address.rpartition("@")[2]


SILENT: Final = Person(
    address="quotes@silent.example",
    name="Silent Valves",
    words=("Sorry for the long silence: 18 valves, 95.00 € each, four weeks.",),
    signature=("Silent Valves, Quotes",),
    after=None,
)
PROMPT: Final = Person(
    address="pat@prompt.example",
    name="Pat Prompt",
    words=(
        "Hello,",
        "we can deliver 40 pumps in the second week of March, at 1,240.00 € each.",
        "Shall I reserve them for you?",
    ),
    signature=("Pat Prompt", "Sales, Prompt Pumps Ltd", "+44 20 7946 0100"),
    after=1,
)
AWAY: Final = Person(
    address="kim@away.example",
    name="Kim Away",
    words=("Quickly from my phone: yes, 200 m of hose are in stock, 3.10 € a metre.",),
    signature=("Sent from my phone",),
    after=4,
    away=True,
)
PEOPLE: Final[Mapping[str, Person]] = {person.domain: person for person in (SILENT, PROMPT, AWAY)}


@value
class Got:
    """What a supplier's second parser found in a mail; ids and addresses as they stood there."""

    message_id: str
    in_reply_to: str
    references: tuple[str, ...]
    sender: str
    reply_to: str
    to: str
    subject: str
    date: str
    text: str
    #: the envelope's sender, where automatic answers go (RFC 3834 section 4)
    return_path: str


def answer(person: Person, got: Got) -> Message:
    """Return the answer as text and HTML, with signature and the question quoted below."""
    mail = MIMEMultipart("alternative")
    mail.attach(MIMEText(_plain(person, got), "plain", "utf-8"))
    mail.attach(MIMEText(_html(person, got), "html", "utf-8"))
    subject = got.subject if got.subject.lower().startswith("re:") else f"Re: {got.subject}"
    return _addressed(mail, person, got, to=got.reply_to or got.sender, subject=subject)


def absence(person: Person, got: Got, today: date) -> Message:
    """Return the note an absent person's server sends by itself (RFC 3834 section 3)."""
    back = today + timedelta(days=1)
    words = (
        f"Thank you for your mail. I am out of the office and will be back on {back:%A}, "
        f"{back.day} {back:%B %Y}.\nYour mail is not forwarded.\n\n{person.name}\n"
    )
    mail = _addressed(
        MIMEText(words, "plain", "utf-8"),
        person,
        got,
        to=got.return_path or got.sender,
        subject=f"Automatic reply: {got.subject}",
    )
    mail["Auto-Submitted"] = "auto-replied"
    return mail


def _addressed(mail: Message, person: Person, got: Got, *, to: str, subject: str) -> Message:
    mail["From"] = formataddr((person.name, person.address))
    mail["To"] = to
    mail["Subject"] = subject
    mail["Date"] = formatdate(localtime=False)
    mail["Message-ID"] = make_msgid(domain=person.domain)
    mail["In-Reply-To"] = got.message_id
    mail["References"] = " ".join((*got.references, got.message_id))
    return mail


def _plain(person: Person, got: Got) -> str:
    quoted = "\n".join(f"> {line}".rstrip() for line in got.text.splitlines())
    words, signature = "\n\n".join(person.words), "\n".join(person.signature)
    return f"{words}\n\n-- \n{signature}\n\n\nOn {got.date}, {got.sender} wrote:\n\n{quoted}\n"


def _html(person: Person, got: Got) -> str:
    words = "<div><br></div>".join(f"<div>{escape(line)}</div>" for line in person.words)
    signature = "<br>".join(map(escape, person.signature))
    quoted = "<br>".join(map(escape, got.text.splitlines()))
    return (
        f'<div dir="ltr">{words}<br clear="all"><div><br></div>'
        '<span class="gmail_signature_prefix">-- </span><br>'
        f'<div dir="ltr" class="gmail_signature">{signature}</div></div><br>'
        '<div class="gmail_quote gmail_quote_container"><div dir="ltr" class="gmail_attr">'
        f"On {escape(got.date)}, {escape(got.sender)} wrote:<br></div>"
        '<blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;padding-left:1ex">'
        f"{quoted}</blockquote></div>\n"
    )
