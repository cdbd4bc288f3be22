"""What of an HTML mail a person can see."""

from __future__ import annotations

import pytest

from answerback.channels.mail.visible import MARKER, visible
from answerback.model import Removed

HIDDEN = [
    ('<div style="display:none">bad</div>', "display:none"),
    ('<div style="DISPLAY : none !important">bad</div>', "display:none"),
    ("<div hidden>bad</div>", "hidden attribute"),
    ('<p style="visibility:hidden">bad</p>', "visibility"),
    ('<span style="font-size:0">bad</span>', "font-size"),
    ('<span style="font-size:0.1em">bad</span>', "font-size"),
    ('<span style="opacity:0">bad</span>', "opacity"),
    ('<span style="color:#fff">bad</span>', "colour"),
    ('<font color="white">bad</font>', "colour"),
    ('<div style="background:#123456"><span style="color:rgb(18,52,86)">bad</span></div>', "colour"),
    ('<span style="color:transparent">bad</span>', "colour"),
    ('<div style="height:0;overflow:hidden">bad</div>', "zero-size"),
    ('<div style="max-height:1px;max-width:1px;overflow:hidden">bad</div>', "zero-size"),
    ('<div style="position:absolute;left:-9999px">bad</div>', "off-screen"),
    ('<p style="text-indent:-9999px">bad</p>', "off-screen"),
    ('<div style="position:absolute;clip:rect(0,0,0,0)">bad</div>', "off-screen"),
    ("<style>.x{display:none}</style><b class=x>bad</b>", "display:none"),
    ("<style>#x b{font-size:0}</style><p id=x><b>bad</b></p>", "font-size"),
    ("<style>i{opacity:0}</style><i>bad</i>", "opacity"),
    ("<style>@media screen{.x{display:none}}</style><b class=x>bad</b>", "display:none"),
    ("<style>.x{display:none !important}</style><b class=x style='display:block'>bad</b>", "display:none"),
    ("<!-- bad -->", "comment"),
    ("<template>bad</template>", "template"),
    ("<script>bad</script>", "script"),
]


@pytest.mark.parametrize(("html", "technique"), HIDDEN)
def test_hidden_text_is_taken_out_and_recorded(html: str, technique: str) -> None:
    seen = visible(f"<p>good</p>{html}<p>fine</p>")
    assert (seen.text, seen.suspect) == ("good\n\nfine", "")
    assert technique in {removed.technique for removed in seen.removed}


SHOWN = [
    ("<p>one</p><p>two<br>three</p>", "one\n\ntwo\nthree"),
    ("<div>one</div><div><br></div><div>two</div>", "one\n\ntwo"),
    ("<p style='margin:0'>one</p><p style='margin:0'>two</p>", "one\ntwo"),
    (
        "<style>p.MsoNormal{margin:0cm}</style><p class=MsoNormal>one</p><p class=MsoNormal>two</p>",
        "one\ntwo",
    ),
    ("<ul><li>one</li><li>two</li></ul>", "- one\n- two"),
    ("<ol><li>one</li><li>two</li></ol>", "1. one\n2. two"),
    ("<table><tr><td>pump</td><td>90</td></tr><tr><td>hose</td><td>8</td></tr></table>", "pump\t90\nhose\t8"),
    ("<p>a&nbsp;&lt;b&gt; &amp; c</p>", "a\xa0<b> & c"),
    ("<pre>a\n  b</pre>", "a\n  b"),
    ("<p>x <img src=cid:1 alt='a picture'> y</p>", "x y"),
    (
        "<div style='display:none'>a</div><span style='visibility:hidden'>b<i style='visibility:visible'>c</i></span>",
        "c",
    ),
    ("<style>.x{display:none}</style><b class=x style='display:inline !important'>shown</b>", "shown"),
    ("<style>@media (max-width:600px){.x{display:none}}</style><b class=x>shown</b>", "shown"),
    ("<div style='background:#000'><p style='color:#fff'>light on dark</p></div>", "light on dark"),
    ("<div style='background-color:white'><p style='color:black'>dark</p></div>", "dark"),
    ("<div style='background-image:url(x)'><p style='color:#fff'>on a picture</p></div>", "on a picture"),
    ("<div style='overflow:hidden;width:10%'>narrow</div>", "narrow"),
    ("<p>new</p><blockquote type=cite>old<br>older</blockquote>", "new\n\n> old\n> older"),
    ("<p>new</p><blockquote style='margin:0 0 0 40px;border:none'>indented</blockquote>", "new\n\nindented"),
    ("<p>new</p><div class=yahoo_quoted><p>old</p></div>", f"new\n\n{MARKER}\n\n> old"),
    ("<p>👩\u200d🔧 ok ✔\ufe0f</p>", "👩\u200d🔧 ok ✔\ufe0f"),
    ("<p>a\u200bb\u202ec\U000e0041d\u00ade</p>", "abcde"),
]


@pytest.mark.parametrize(("html", "text"), SHOWN)
def test_visible_text_keeps_its_lines(html: str, text: str) -> None:
    assert visible(html).text == text


def test_what_may_have_been_hidden_is_suspect() -> None:
    seen = visible(
        "<p>good</p><p style='color:#ddd'>pale</p><details><summary>more</summary>closed</details>"
    )
    assert (seen.text, seen.suspect.split()) == ("good", ["pale", "more", "closed"])


def test_html_too_deep_to_judge_is_suspect_as_a_whole() -> None:
    seen = visible("<div>" * 5_000 + "words")
    assert (seen.text, seen.suspect) == ("", "words")


def test_removed_techniques_are_counted() -> None:
    assert visible("<b hidden>x</b><b hidden>y</b>z\u200b").removed == (
        Removed(technique="hidden attribute", count=2),
        Removed(technique="zero-width", count=1),
    )


@pytest.mark.parametrize(
    "html", ["<div>" * 100_000, "<b>" * 60_000, "<table>" * 5_000, "<!--" * 20_000, '<p style="' + "(" * 60_000, "<style>" + "a{" * 30_000]
)  # fmt: skip
@pytest.mark.timeout(5)
def test_hostile_html_is_answered_quickly(html: str) -> None:
    assert visible(html).text.strip() == ""
