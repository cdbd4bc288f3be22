"""The commands of an operator: set up, run, look after; agents, inboxes, contacts, keys, schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import typer

from answerback.gateway.doors.line import Line, command

Zone = Annotated[str | None, typer.Option("--zone", help="IANA time zone, as Europe/Berlin")]
Country = Annotated[str | None, typer.Option("--country", help="two letters, for its holidays")]
Named = Annotated[str, typer.Argument(metavar="NAME")]
Address = Annotated[str, typer.Argument(metavar="ADDRESS")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    single: dict[str, Callable[..., int]] = {
        "init": init,
        "serve": serve,
        "demo": demo,
        "simulate": simulate,
        "doctor": doctor,
    }
    for name, function in single.items():
        command(app, name)(function)
    groups: dict[str, tuple[str, dict[str, Callable[..., int]]]] = {
        "agents": ("Software agents.", {"add": add_agent, "list": list_agents}),
        "inboxes": ("Addresses agents write from.", {"add": add_inbox, "list": list_inboxes}),
        "contacts": ("Outside persons.", {"add": add_contact, "list": list_contacts}),
        "keys": ("API keys.", {"create": create_key, "list": list_keys, "revoke": revoke_key}),
        "suppressions": (
            "Addresses that are not written to.",
            {"add": suppress, "remove": unsuppress, "list": list_suppressions},
        ),
        "schedules": ("Follow-up policies.", {"list": list_schedules, "put": put_schedule}),
    }
    for group, (says, commands) in groups.items():
        child = typer.Typer(help=says, no_args_is_help=True)
        for name, function in commands.items():
            command(child, name)(function)
        app.add_typer(child, name=group)


def init(line: Line) -> int:
    """Make the home with its keyring and database; what exists is kept."""
    from answerback.gateway import app

    line.show(app.initialise(line.settings()))
    return 0


def serve(line: Line) -> int:
    """Run the gateway: mail in and out, HTTP, the clock."""
    from answerback.gateway.doors import server

    server.run(line.settings(), as_json=line.options.as_json)
    return 0


def demo(
    line: Line,
    once: Annotated[bool, typer.Option("--once", help="end when the story has")] = False,
    speed: Annotated[float, typer.Option("--speed", help="divides every delay, 0.1 to 3")] = 1.0,
) -> int:
    """Play three suppliers on this machine and show what becomes of each question."""
    from answerback.gateway.doors import demo as play

    return play.main(once=once, as_json=line.options.as_json, home=line.options.home, speed=speed)


def simulate(line: Line, folders: Annotated[list[str], typer.Argument(metavar="DIR...")]) -> int:
    """Run scenario folders on a database in memory and a virtual clock."""
    from answerback.gateway.simulate import run

    return int(run.main(folders, line.options.as_json))


def doctor(line: Line) -> int:
    """Check this place and say what to do about what is wrong."""
    from answerback.gateway import doctor as checks
    from answerback.gateway.doors import lock, output

    report = checks.examine(line.settings, serving=lock.is_held)
    if line.options.as_json:
        line.show(report)
    else:
        output.checklist(report)
    return 0 if report["ok"] else 1


def add_agent(
    line: Line,
    name: Named,
    owner: Annotated[str | None, typer.Option(help="who answers for it [default: person:operator]")] = None,
    identity_ref: Annotated[
        str | None, typer.Option(help="its identity elsewhere [default: a local id]")
    ] = None,
) -> int:
    """Add an agent with its mailbox."""
    return line.call("agents.add", name=name, owner=owner, identity_ref=identity_ref)


def list_agents(line: Line) -> int:
    """List the agents."""
    return line.call("agents.list")


def add_inbox(  # noqa: PLR0913 - one parameter per option
    line: Line,
    address: Address,
    *,
    agent: Annotated[str, typer.Option("--agent", help="whose it is")],
    display_name: Annotated[str | None, typer.Option(help="name people see")] = None,
    sub_addresses: Annotated[bool, typer.Option(help="the host delivers name+anything to it too")] = True,
    external: Annotated[
        Literal["refuse", "verified", "all"] | None,
        typer.Option(
            help="mail nobody asked for; for now refuse and verified put it before a person [default: refuse]"
        ),
    ] = None,
    zone: Zone = None,
    country: Country = None,
) -> int:
    """Add an address an agent writes from and is answered at."""
    return line.call(
        "inboxes.add",
        address=address,
        agent=agent,
        display_name=display_name,
        sub_addresses=sub_addresses,
        external=external,
        zone=zone,
        country=country,
    )


def list_inboxes(line: Line) -> int:
    """List the inboxes."""
    return line.call("inboxes.list")


def add_contact(  # noqa: PLR0913 - one parameter per option
    line: Line,
    name: Named,
    addresses: Annotated[list[str], typer.Argument(metavar="ADDRESS...")],
    *,
    zone: Zone = None,
    country: Country = None,
    workday: Annotated[list[int] | None, typer.Option(help="1 is Monday, 7 Sunday; several times")] = None,
    holiday: Annotated[list[str] | None, typer.Option(help="a day off as 2026-12-24; several times")] = None,
    window: Annotated[str | None, typer.Option(help="working hours as 09:00-17:00")] = None,
) -> int:
    """Add an outside person with zone, country and hours."""
    return line.call(
        "contacts.add",
        name=name,
        addresses=addresses,
        zone=zone,
        country=country,
        workdays=workday or None,
        holidays=holiday or None,
        window=window.split("-") if window else None,
    )


def list_contacts(line: Line) -> int:
    """List the contacts."""
    return line.call("contacts.list")


def create_key(
    line: Line,
    name: Named,
    scope: Annotated[list[str], typer.Option("--scope", help="what it may do; several times")],
    agent: Annotated[
        str | None, typer.Option("--agent", help="whom it speaks for [default: an operator]")
    ] = None,
) -> int:
    """Make a key; its secret is shown this once."""
    return line.call("keys.create", name=name, scopes=scope, agent=agent)


def list_keys(line: Line) -> int:
    """List the keys without their secrets."""
    return line.call("keys.list")


def revoke_key(line: Line, key: Annotated[str, typer.Argument(metavar="ID")]) -> int:
    """Refuse a key from now on."""
    return line.call("keys.revoke", id=key)


def suppress(
    line: Line,
    address: Address,
    reason: Annotated[
        Literal["bounce", "complaint", "opt_out", "manual"] | None, typer.Option(help="[default: manual]")
    ] = None,
) -> int:
    """Never write to an address again."""
    return line.call("suppressions.add", address=address, reason=reason)


def unsuppress(line: Line, address: Address) -> int:
    """Let an address be written to again."""
    return line.call("suppressions.remove", address=address)


def list_suppressions(line: Line) -> int:
    """List the addresses that are not written to, with the reason."""
    return line.call("suppressions.list")


def list_schedules(line: Line) -> int:
    """List the follow-up policies in their newest version."""
    return line.call("schedules.list")


def put_schedule(  # noqa: PLR0913 - one parameter per option
    line: Line,
    name: Named,
    *,
    gap: Annotated[
        list[str], typer.Option("--gap", help="one per nudge and a last one before the end: 2bd, 36h")
    ],
    on_abandon: Annotated[
        Literal["fail_step", "tell_owner", "hand_to_person", "stop_sequence"] | None,
        typer.Option(help="what the agent is told to do in the end [default: tell_owner]"),
    ] = None,
    sequence: Annotated[
        bool, typer.Option("--sequence", help="mail nobody asked for: at most one nudge")
    ] = False,
    away_default: Annotated[
        int | None, typer.Option(help="business days without a return date [default: 3]")
    ] = None,
    away_limit: Annotated[
        int | None, typer.Option(help="business days all moves may reach [default: 20]")
    ] = None,
    nudge_text: Annotated[str | None, typer.Option(help="template of a nudge")] = None,
) -> int:
    """Store a new version of a follow-up policy; running waits keep theirs."""
    return line.call(
        "schedules.put",
        name=name,
        gaps=gap,
        on_abandon=on_abandon,
        sequence=sequence,
        away_default=away_default,
        away_limit=away_limit,
        nudge_text=nudge_text,
    )
