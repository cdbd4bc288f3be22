"""What has happened in the demo so far, and each piece of it as one sentence for the timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from answerback.gateway.doors.demo_mails import AWAY, PROMPT, SILENT
from answerback.gateway.doors.demo_stage import Note
from answerback.model import Json, value

MAILBOX = "mailbox"
PREFIX = "answerback."
#: characters of somebody's words that a line shows
SHOWN = 60


@value
class Question:
    """What the agent asks one supplier."""

    to: str
    key: str
    subject: str
    text: str


QUESTIONS = (
    Question(
        to=SILENT.address,
        key="po-4711",
        subject="Quote for 18 valves",
        text="Hello,\n\ncould you quote 18 ball valves DN 50, delivered in March?\n\nKind regards\nBuyer",
    ),
    Question(
        to=PROMPT.address,
        key="po-4712",
        subject="Quote for 40 pumps",
        text="Hello,\n\ncould you quote 40 pumps, delivered in March?\n\nKind regards\nBuyer",
    ),
    Question(
        to=AWAY.address,
        key="po-4713",
        subject="200 m of hose",
        text="Hello,\n\nis 200 m of suction hose in stock, and at what price?\n\nKind regards\nBuyer",
    ),
)


@dataclass
class Story:
    """Everything heard: what each supplier's server saw, what it sent, and the agent's mailbox."""

    asked: dict[str, Json] = field(default_factory=dict)
    received: dict[str, list[Json]] = field(default_factory=dict)
    sent: dict[str, list[Json]] = field(default_factory=dict)
    mailbox: list[Json] = field(default_factory=list)

    def hear(self, note: Note) -> str:
        """Remember a note and return it as a sentence, "" for what is no part of the story."""
        said: Any = note.said
        if note.who == MAILBOX:
            self.mailbox.append(said)
            return told(said["event"], self.key_of(said["event"]["data"]), said["sequence"])
        match said.get("event"):
            case "received":
                self.received.setdefault(note.who, []).append(said)
                return _received(said)
            case "sent":
                self.sent.setdefault(note.who, []).append(said)
                return SENT[said["kind"]]
            case "failed":
                return f"could not send: {said['problem']}"
        return ""

    def key_of(self, data: Json) -> str:
        """Return the correlation key an event is about, "" where it is about none of ours."""
        keys = {asked["conversation_id"]: key for key, asked in self.asked.items()}
        return str(data.get("correlation_key") or keys.get(data.get("conversation_id"), ""))

    def events(self, key: str, kind: str) -> list[Json]:
        """Return the mailbox items of a kind (the suffix of the origin's worth left aside) about one key."""
        return [
            item
            for item in self.mailbox
            if kind_of(item["event"]) == kind and self.key_of(_data(item)) == key
        ]

    @property
    def abandoned(self) -> bool:
        """Whether the silent supplier's question has been given up."""
        return bool(self.events(QUESTIONS[0].key, "wait.abandoned"))

    @property
    def over(self) -> bool:
        """Whether every supplier has answered and every answer arrived, the late one too."""
        return all(
            self.events(question.key, "waitpoint.resolved")
            and any(sent["kind"] == "reply" for sent in self.sent.get(question.to, []))
            for question in QUESTIONS
        )


SENT = {
    "out_of_office": "its server sends an out-of-office note",
    "reply": "answers in HTML, with a signature and the history quoted below",
}


def _data(item: Json) -> Json:
    event: Any = item["event"]
    data: Json = event["data"]
    return data


def kind_of(event: Any) -> str:
    """Return an event's type without prefix and suffix, as `waitpoint.resolved`."""
    return ".".join(str(event["type"]).removeprefix(PREFIX).split(".")[:2])


def _received(said: Json) -> str:
    mail = f"“{said['subject']}”, Message-ID {brief(str(said['message_id']))}"
    if not said["in_reply_to"]:
        return f"gets {mail}"
    return f"gets a nudge in the same thread: {mail}, In-Reply-To {brief(str(said['in_reply_to']))}"


def brief(message_id: str) -> str:
    """Return the beginning of a message id, enough to tell it from the others."""
    return f"{message_id[:9]}…>"


def told(event: Any, key: str, number: object) -> str:
    """Return a mailbox item as a sentence."""
    data = event["data"]
    match kind_of(event):
        case "waitpoint.opened":
            says = "an answer is expected"
        case "wait.nudged":
            says = f"nudge {data['nudge']} goes out"
        case "message.auto_replied":
            says = "an automatic reply; the question stays open"
        case "wait.postponed":
            says = "the clock moves on to after the absence"
        case "wait.abandoned":
            says = f"given up: {data['reason']}"
        case "waitpoint.resolved":
            says = f"answered ({data['timing']}): “{shortened(words(data))}”"
        case other:
            says = other
    return f"#{number} {key}: {says}"


def shortened(text: str) -> str:
    """Return a text in one short line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


def words(data: Any, *kinds: str) -> str:
    """Return what the parts of these kinds say (default: the answer), without the markers around them."""
    wanted = kinds or ("reply", "inline")
    texts = [str(part["text"]) for part in data["parts"] if part["kind"] in wanted]
    return "\n".join("\n".join(text.splitlines()[1:-1]) for text in texts)
