"""The documentation of the wait is drawn from its table."""

from __future__ import annotations

from pathlib import Path

from answerback.waits.picture import mermaid, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "waits.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


def test_the_picture_shows_what_leads_from_state_to_state() -> None:
    lines = mermaid().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    [*] --> waiting: Queued, Sent" in lines
    assert "    replied --> waiting: Misread" in lines
    assert not any(line.startswith("    cancelled --> ") for line in lines)
