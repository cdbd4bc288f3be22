"""The words mail programs write around quoted and forwarded mail, in the languages they speak."""

# The words are those of many alphabets, so letters that look like Latin ones belong here.
# ruff: noqa: RUF001
from __future__ import annotations

import re

#: how an attribution line says "wrote" (en de fr es it pt nl da sv no pl cs sk ru uk fi hu tr ro el ja zh ko
#: vi id ar he hr bg ca lt lv et sl th)
WROTE = re.compile(
    r"\bwrote\b|\bwrites\b|\bschrieb(?:en)?\b|\ba\s+écrit\b|\bescribió\b|\bha\s+scritto\b"
    r"|\bescreveu\b|\bschreef\b"
    r"|\bskrev\b|\bnapisał[ay]?\b|\bnapisał\(a\)|\bpisze\b|\bnapsala?\b|\bnapsal\(a\)|\bnapísala?\b"
    r"|\bnapísal\(a\)"
    r"|\bписала?\b|\bнаписала?\b|\bнаписал\(а\)|\bпишет\b|\bнаписа(?:в|ла)\b|\bпише\b|\bkirjoitti\b"
    r"|\bírta\b|\byazdı\b"
    r"|\ba\s+scris\b|\bέγραψε\b|のメール|は書きました|さんが書いた|写道|寫道"
    r"|님이\s*작성|님이\s*쓴|작성:|\bđã\s+viết\b|\bmenulis\b"
    r"|كتب|כתב|\bje\s+napisao\b|\bje\s+napisala\b|\bнаписа\b|\bva\s+escriure\b|\brašė\b|\brakstīja\b"
    r"|\bkirjutas\b"
    r"|\bje\s+napisal\b|เขียนว่า",
    re.IGNORECASE,
)
#: how an attribution line begins
BEGINS = re.compile(
    r"[*_\s]*(?:On|Am|Le|El|Il|Em|Op|Den|Dne|Dňa|W\s+dniu|Dnia|W\s+dniach|Il\s+giorno|Em|Pe|În|Στις"
    r"|Vào|Pada|Ma|ke|pe|la|to|su|"
    r"ti|Kl|Mon|Tue|Wed|Thu|Fri|Sat|Sun|Mo|Di|Mi|Do|Fr|Sa|So|lun|mar|mer|jeu|ven|sam|dim|пн|вт|ср|чт"
    r"|пт|сб|вс|В|"
    r")(?=[\s.,])|[*_\s]*\d{1,4}[-./:年\s]",
    re.IGNORECASE,
)
#: the verb in the last words of a line: "Pat Lee wrote:", "Pat Lee schrieb am Montag:"
CLOSES = re.compile(rf"(?:{WROTE.pattern})[^|]{{0,40}}\Z", re.IGNORECASE)
ADDRESS = re.compile(r"[^\s<>@]{1,64}@[^\s<>@]{1,255}")
DATE = re.compile(r"\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\b(?:19|20)\d\d\b|\d{1,2}:\d{2}|\d{1,2}月")
TIME = re.compile(r"\d{1,2}[:.h]\d{2}")

_LABELS = {
    "from": (
        "from von de da fra från van lähettäjä od от від feladó kimden gönderen expéditeur 发件人 "
        "寄件者 寄件人 差出人 送信者 送信元 보낸사람 보낸\x00사람 من מאת từ dari από "
        "verzonden\x00door mittente pošiljatelj "
        "no saatja remitente"
    ),
    "date": (
        "date datum data fecha dato dátum tarih дата 日期 日時 日付 날짜 تاريخ التاريخ תאריך ngày "
        "tanggal ημερομηνία kuupäev päivämäärä"
    ),
    "sent": (
        "inviato verzonden sendt skickat wysłano odesláno odoslané отправлено надіслано "
        "lähetetty elküldve gönderildi gönderilme\x00tarihi "
        "trimis 发送时间 傳送時間 寄件日期 送信日時 보낸날짜 보낸\x00날짜 "
        "נשלח đã\x00gửi dikirim στάλθηκε poslano дата\x00отправки"
    ),
    "to": (
        "to an à a para til till aan do komu кому vastaanottaja címzett kime alıcı către la 收件人 "
        "宛先 送信先 받는사람 받는\x00사람 받는이 إلى אל đến kepada προς "
        "destinatario destinataire pre za naar per"
    ),
    "subject": (
        "subject betreff objet sujet asunto oggetto assunto onderwerp emne ämne temat předmět "
        "predmet тема aihe tárgy konu subiect 主题 主題 主旨 件名 제목 "
        "الموضوع נושא chủ\x00đề tiêu\x00đề subjek "
        "θέμα assumpte teema tēma risposta"
    ),
    "cc": (
        "cc kopie copie copie\x00à copia cópia kopia kopio másolat bilgi 抄送 副本 참조 копия копія "
        "kopija bcc reply-to"
    ),
}
#: a field label of a quoted header block, without case and colon → which field it is
LABEL = {
    word.replace("\x00", " "): field for field, words in _LABELS.items() for word in words.split(" ") if word
}

_ORIGINAL = (
    "original message|original appointment|original mail|original email|ursprüngliche nachricht"
    "|originalnachricht|original-nachricht"
    "|originalmail|message d'origine|message original|message initial|courriel original|mensaje"
    " original|messaggio originale"
    "|mensagem original|oorspronkelijk bericht|oorspronkelijke bericht|original besked|oprindelig"
    " meddelelse|oprindelig besked"
    "|ursprungligt meddelande|originalmeddelande|opprinnelig melding|oryginalna wiadomość|wiadomość"
    " oryginalna|původní zpráva"
    "|původní e-mail|pôvodná správa|исходное сообщение|исходное письмо|оригинальное сообщение"
    "|вихідне повідомлення"
    "|alkuperäinen viesti|eredeti üzenet|orijinal mesaj|özgün mesaj|mesaj original|αρχικό μήνυμα"
    "|原始邮件|原始郵件|元のメッセージ"
    "|原文|원본 메시지|원본 메일|thư gốc|pesan asli|الرسالة الأصلية"
    "|הודעה מקורית|izvorna poruka|missatge original"
)
_FORWARDED = (
    "forwarded message|forwarded by [^-]{1,80}|forwarded mail|weitergeleitete nachricht|message"
    " transféré|message transmis|courriel transféré"
    "|mensaje reenviado|messaggio inoltrato|mensagem encaminhada|doorgestuurd bericht|videresendt"
    " besked|videresendt meddelelse"
    "|videresendt melding|vidarebefordrat meddelande|wiadomość przekazana|przekazana wiadomość"
    "|přeposlaná zpráva"
    "|preposlaná správa|пересылаемое сообщение|пересланное сообщение|переслане повідомлення"
    "|välitetty viesti|edelleenlähetetty viesti"
    "|továbbított üzenet|iletilen mesaj|yönlendirilmiş ileti|iletilmiş mesaj|mesaj redirecționat"
    "|προωθημένο μήνυμα|перенаправлене повідомлення"
    "|转发的邮件|转发邮件|轉寄郵件|転送メッセージ|メッセージを転送"
    "|전달된 메시지|thư chuyển tiếp|pesan terusan|الرسالة المعاد توجيهها|הודעה שהועברה|proslijeđena poruka"
)
ORIGINAL = re.compile(
    rf"[\s>*]{{0,10}}[-_=]{{2,80}}\s{{0,4}}(?:{_ORIGINAL})\s{{0,4}}:?[-_=]{{2,80}}[\s*]{{0,9}}", re.IGNORECASE
)
FORWARD = re.compile(
    rf"[\s>*]{{0,10}}[-_=]{{2,80}}\s{{0,4}}(?:{_FORWARDED})\s{{0,4}}:?[-_=]{{2,80}}[\s*]{{0,9}}",
    re.IGNORECASE,
)
#: the same without dashes, as Apple Mail writes it
BEGIN_FORWARD = re.compile(
    r"[\s>*]{0,10}(?:begin forwarded message|anfang der weitergeleiteten nachricht"
    r"|début du message (?:réexpédié|transféré)"
    r"|inicio del mensaje reenviado|inizio messaggio inoltrato|início da mensagem (?:reencaminhada"
    r"|encaminhada)"
    r"|begin doorgestuurd bericht|start på videresendt besked|start på videresendt melding"
    r"|vidarebefordrat brev"
    r"|początek przekazywanej wiadomości|začátek přeposílané zprávy|начало переадресованного сообщения"
    r"|välitetty viesti alkaa|iletilen mesajın başlangıcı"
    r"|下面是被转发的邮件|转发的邮件|転送されたメッセージ)\s{0,3}[:：]\s*",
    re.IGNORECASE,
)
#: a line telephones add by themselves
SENT_FROM = re.compile(
    r"[\s*_-]{0,4}(?:sent from (?:my |outlook|mail|yahoo|proton|samsung)|get outlook for"
    r"|von meinem .{1,30} gesendet"
    r"|gesendet von |gesendet mit |envoyé de(?:puis)? mon |envoyé à partir de |enviado desde mi "
    r"|enviado do meu |inviato da(?:l mio)? "
    r"|verzonden vanaf mijn |verstuurd vanaf mijn |skickat från min |sendt fra min |lähetetty "
    r"|wysłane z |odesláno z "
    r"|отправлено с |iphone'umdan gönderildi|iphoneから送信|发自我的|從我的).{0,60}",
    re.IGNORECASE,
)
#: words before the subject that say the mail is passed on
FORWARD_PREFIX = re.compile(
    r"\s*(?:fw|fwd|wg|tr|rv|i|enc|doorst|vb|pd|пересл|ilt"
    r"|továbbítás|转发|轉寄|転送|전달|προωθ|vl)\s{0,2}[:：]",
    re.IGNORECASE,
)
