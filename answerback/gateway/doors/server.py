"""Runs the gateway in the foreground and says where it listens."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING

from answerback.gateway import app
from answerback.gateway.doors import lock, logs
from answerback.gateway.doors.http_api import create_app

if TYPE_CHECKING:
    from answerback.gateway.settings import Settings


def run(settings: Settings, *, as_json: bool) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        AlreadyServing: a server runs on this home. NoDatabase, CorruptDatabase, NewerDatabase, BadSettings.
    """
    with lock.held(settings.home):
        logs.configure()

        def ready(listening: app.Listening) -> None:
            print(_announcement(settings, listening, as_json=as_json), flush=True)

        stop = asyncio.Event()
        application = partial(create_app, stopping=stop)
        asyncio.run(app.serve(settings, application, ready=ready, stop=stop))


def _announcement(settings: Settings, listening: app.Listening, *, as_json: bool) -> str:
    url = f"http://{_in_url(settings.http.host)}:{listening.http_port}"
    if as_json:
        return json.dumps(
            {
                "status": "serving",
                "home": str(settings.home),
                "http_url": url,
                "http_port": listening.http_port,
                "smtp_host": settings.smtp_in.host,
                "smtp_port": listening.smtp_port,
            }
        )
    mail = f"{settings.smtp_in.host}:{listening.smtp_port}"
    relay = "" if settings.smtp_out.host else "; no relay is set, so nothing can be sent"
    return f"serving: mail on {mail}, HTTP on {url}{relay}; Ctrl-C ends it"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
