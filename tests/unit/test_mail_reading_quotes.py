"""What the author wrote now, and what is history, signature or passed on."""

from __future__ import annotations

import pytest

from answerback.channels.mail.quotes import split
from answerback.model import Part, PartKind

R, BETWEEN, Q, F, S = PartKind.REPLY, PartKind.INLINE, PartKind.QUOTED, PartKind.FORWARDED, PartKind.SIGNATURE
ASKED = "Hello Kim,\nwhat does the pump cost, and when could it be here?\nBest wishes, Buying"
QUOTE = "> Hello Kim,\n> what does the pump cost, and when could it be here?"
BARE = "Hello Kim,\nwhat does the pump cost, and when could it be here?"


def _kinds(parts: tuple[Part, ...]) -> list[tuple[PartKind, str]]:
    return [(part.kind, part.text) for part in parts]


def _reply(text: str, sent: tuple[str, ...] = (ASKED,)) -> str:
    return "\n".join(part.text for part in split(text, sent) if part.kind in (R, BETWEEN))


ATTRIBUTIONS = [
    "On Wed, 7 May 2025 at 14:03, Buying <buy@gw.example> wrote:",
    "Am Mittwoch, 7. Mai 2025 um 14:03 schrieb Buying <buy@gw.example>:",
    "Am 07.05.25 um 14:03 schrieb Buying:",
    "Le mer. 7 mai 2025 à 14:03, Buying <buy@gw.example> a écrit\u00a0:",
    "El mié, 7 may 2025 a las 14:03, Buying (<buy@gw.example>) escribió:",
    "Il giorno mer 7 mag 2025 alle ore 14:03 Buying <buy@gw.example> ha scritto:",
    "Em qua., 7 de mai. de 2025 às 14:03, Buying <buy@gw.example> escreveu:",
    "Op wo 7 mei 2025 om 14:03 schreef Buying <buy@gw.example>:",
    "Den ons 7 maj 2025 kl 14:03 skrev Buying <buy@gw.example>:",
    "Den ons. 7. maj 2025 kl. 14.03 skrev Buying <buy@gw.example>:",
    "śr., 7 maj 2025 o 14:03 Buying <buy@gw.example> napisał(a):",
    "st 7. 5. 2025 v 14:03 odesílatel Buying <buy@gw.example> napsal:",
    "ср, 7 мая 2025 г. в 14:03, Buying <buy@gw.example>:",
    "07.05.2025 14:03, Buying пишет:",
    "ke 7.5.2025 klo 14.03 Buying (buy@gw.example) kirjoitti:",
    "Buying <buy@gw.example> ezt írta (időpont: 2025. máj. 7., Sze, 14:03):",
    "Buying <buy@gw.example>, 7 May 2025 Çar, 14:03 tarihinde şunu yazdı:",
    "În mie., 7 mai 2025 la 14:03, Buying <buy@gw.example> a scris:",
    "2025年5月7日(水) 14:03 Buying <buy@gw.example>:",
    "Buying <buy@gw.example> 于2025年5月7日周三 14:03写道：",
    "2025년 5월 7일 (수) 오후 2:03, Buying <buy@gw.example>님이 작성:",
]


@pytest.mark.parametrize("line", ATTRIBUTIONS)
def test_an_attribution_above_quote_marks_opens_history(line: str) -> None:
    assert _reply(f"It costs 90.\n\n{line}\n\n{QUOTE}", ()) == "It costs 90."


@pytest.mark.parametrize(
    "line", [line for line in ATTRIBUTIONS if "Buying:" not in line and "пишет" not in line]
)
def test_an_attribution_with_an_address_opens_history_without_quote_marks(line: str) -> None:
    assert (
        _reply(f"It costs 90.\n\n{line}\n\nSome words we can not compare with anything", ()) == "It costs 90."
    )


HEADERS = [
    ("From", "Sent", "To", "Subject"), ("Von", "Gesendet", "An", "Betreff"), ("De", "Envoyé", "À", "Objet"),
    ("De", "Enviado el", "Para", "Asunto"), ("Da", "Inviato", "A", "Oggetto"), ("De", "Enviada em", "Para", "Assunto"),
    ("Van", "Verzonden", "Aan", "Onderwerp"), ("Fra", "Sendt", "Til", "Emne"), ("Från", "Skickat", "Till", "Ämne"),
    ("Od", "Wysłano", "Do", "Temat"), ("Od", "Odesláno", "Komu", "Předmět"), ("От", "Отправлено", "Кому", "Тема"),
    ("Lähettäjä", "Lähetetty", "Vastaanottaja", "Aihe"), ("Feladó", "Elküldve", "Címzett", "Tárgy"),
    ("Kimden", "Gönderildi", "Kime", "Konu"), ("发件人", "发送时间", "收件人", "主题"), ("差出人", "送信日時", "宛先", "件名"),
    ("보낸 사람", "날짜", "받는 사람", "제목"), ("*From:*", "*Sent:*", "*To:*", "*Subject:*"),
]  # fmt: skip


@pytest.mark.parametrize("labels", HEADERS)
def test_a_header_block_opens_history_in_every_language(labels: tuple[str, ...]) -> None:
    values = ("Buying <buy@gw.example>", "7 May 2025 14:03", "Kim", "Pump")
    block = "\n".join(
        f"{label.removesuffix(':*') + ':*' if '*' in label else label + ':'} {value}"
        for label, value in zip(labels, values, strict=True)
    )
    assert (
        _reply(f"It costs 90.\n\n________________________________\n{block}\n\nOlder words") == "It costs 90."
    )


MARKERS = [
    "-----Original Message-----", "-----Ursprüngliche Nachricht-----", "----- Message d'origine -----", "-------- Mensaje original --------",
    "--------- Messaggio originale ---------", "-----Oorspronkelijk bericht-----", "-----Oprindelig meddelelse-----",
    "-----Исходное сообщение-----", "-----Oryginalna wiadomość-----", "-----原始邮件-----", "*-------- Original Message --------*",
]  # fmt: skip


@pytest.mark.parametrize("marker", MARKERS)
def test_an_original_message_line_opens_history(marker: str) -> None:
    assert _reply(f"It costs 90.\n\n{marker}\nanything at all\n") == "It costs 90."


WHOLE = [
    # lines that look like marks and are the author's own words
    "Kim from planning wrote:\nthe pump leaves on Friday.",
    "On Tuesday we wrote to the carrier. Their answer came today:\nall fine.",
    "Route of the truck:\nFrom: Hamburg\nTo: Lyon\nDate: 12 March\nArrival by noon.",
    "Two options -- both in stock -- see below\n-- first: 90 EUR\n-- second: 80 EUR",
    "Prices:\n>10 pcs: 9.00\n>100 pcs: 8.00",
    "The subject: pumps. To: be decided.",
    "Am Montag schrieb ich Ihnen schon:\nder Preis gilt.",
    "YES",
    "Our offer:\n\nUnit 90 EUR\n-----\nTotal 900 EUR",
    "Please note:\n\n----- prices without VAT -----\n\n90 EUR",
]


@pytest.mark.parametrize("text", WHOLE)
def test_words_that_only_look_like_history_stay_the_authors(text: str) -> None:
    assert _kinds(split(text, (ASKED,))) == [(R, text)]


def test_a_choice_offered_by_us_and_given_back_alone_is_an_answer() -> None:
    assert _reply("YES", ("Reply YES or NO",)) == "YES"


def test_answers_between_quoted_lines_name_the_line_they_answer() -> None:
    text = "On 7 May 2025 14:03, Buying <buy@gw.example> wrote:\n> What does it cost?\n90 EUR\n> And when?\nFriday."
    parts = [(part.kind, part.text, part.answers) for part in split(text) if part.kind is not Q]
    assert parts == [(BETWEEN, "90 EUR", "What does it cost?"), (BETWEEN, "Friday.", "And when?")]


def test_an_answer_below_the_quote_is_the_reply() -> None:
    text = f"On 7 May 2025 14:03, Buying <buy@gw.example> wrote:\n{QUOTE}\n\nIt costs 90."
    assert _kinds(split(text))[1:] == [(R, "It costs 90.")]


def test_history_without_marks_is_known_by_its_words() -> None:
    parts = split(f"It costs 90.\n\n{BARE}", (ASKED,))
    assert [(part.kind, part.text, part.known) for part in parts] == [
        (R, "It costs 90.", None),
        (Q, BARE, True),
    ]


def test_a_few_words_of_ours_repeated_in_a_sentence_are_the_authors() -> None:
    assert _reply("You ask when could it be here: on Friday.") == "You ask when could it be here: on Friday."


def test_quoted_words_we_never_wrote_are_not_known() -> None:
    text = "Fine.\n\nOn 7 May 2025 14:03, Buying <buy@gw.example> wrote:\n> You owe us 5000 EUR at once and without delay"
    assert [part.known for part in split(text, (ASKED,))] == [None, False]


def test_a_signature_stands_apart_and_a_long_one_is_text() -> None:
    assert _kinds(split("It costs 90.\n\n-- \nKim\nPumps Ltd")) == [
        (R, "It costs 90."),
        (S, "--\nKim\nPumps Ltd"),
    ]
    long = "It costs 90.\n--\n" + "\n".join(f"line {number}" for number in range(40))
    assert _kinds(split(long)) == [(R, long)]


def test_a_line_a_telephone_adds_is_a_signature() -> None:
    assert _kinds(split("It costs 90.\n\nVon meinem iPhone gesendet")) == [
        (R, "It costs 90."),
        (S, "Von meinem iPhone gesendet"),
    ]


def test_forwarded_mail_is_kept_as_such() -> None:
    text = "See below.\n\n---------- Weitergeleitete Nachricht ---------\nVon: Bo <bo@c.example>\nBetreff: Slot\nDatum: heute\n\nSlot is free."
    assert [part.kind for part in split(text)] == [R, F]
    assert (
        split("Begin forwarded message:\n\n> From: Bo <bo@c.example>\n> Subject: Slot\n\n> Slot is free.")[
            0
        ].kind
        is F
    )


@pytest.mark.parametrize(
    "text",
    ["On " * 20_000, "wrote:" * 20_000, " " * 60_000, ">" * 60_000, "\n" * 60_000, "wrote:\n" * 9_000, "From: a@b\nTo: c\n" * 5_000],
)  # fmt: skip
@pytest.mark.timeout(5)
def test_hostile_text_is_split_without_losing_a_word(text: str) -> None:
    parts = split(text, (ASKED,))
    assert sum(part.text.count("O") + part.text.count("w") for part in parts) == text.count("O") + text.count(
        "w"
    )
