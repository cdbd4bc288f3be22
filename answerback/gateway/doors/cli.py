"""The command line: finds the command, and turns what goes wrong into one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from answerback import __version__
from answerback.errors import AnswerbackError, BadUsage
from answerback.gateway.doors import cli_agent, cli_ask, cli_operator, output
from answerback.gateway.doors.line import Agent, AsJson, Environment, Home, Options, OutputClosedError

#: a fault of ours: no refusal has this code
FAULT = 70
INTERRUPTED = 130
#: what a shell shows for a program that SIGPIPE ended
OUTPUT_CLOSED = 141
DEBUG = "ANSWERBACK_DEBUG"

app = typer.Typer(
    name="answerback",
    help="Lets a software agent write to a person and get that person's answer back.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"answerback {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    home: Home = None,
    environment: Environment = None,
    agent: Agent = None,
    as_json: AsJson = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="print the version")
    ] = False,
) -> None:
    """Lets a software agent write to a person and get that person's answer back."""
    context.obj = Options(home=home, environment=environment, agent=agent, as_json=as_json)


cli_ask.register(app)
cli_agent.register(app)
cli_operator.register(app)


def run(words: Sequence[str]) -> int:
    """Carry a command out and return its exit code; nothing but the interpreter's own exits is raised."""
    try:
        code = _carried_out(words)
        sys.stdout.flush()
    except (BrokenPipeError, OutputClosedError):
        # Whoever read our output has enough (`… | head`); Python's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    return code


def _carried_out(words: Sequence[str]) -> int:
    as_json = "--json" in words
    try:
        return int(app(list(words), prog_name="answerback", standalone_mode=False) or 0)
    except AnswerbackError as error:
        output.refusal(error, as_json=as_json)
        return error.exit_code
    except typer.TyperException as error:
        return _misused(error, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except OutputClosedError:
        raise
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        # The text of an error may hold other people's words; its kind does not.
        kind = type(error).__name__
        print(f"answerback: a fault of ours ({kind}). {DEBUG}=1 shows where.", file=sys.stderr)
        return FAULT


def _misused(error: typer.TyperException, *, as_json: bool) -> int:
    problem = error.format_message().strip().replace("Value error, ", "")
    if problem.startswith("Usage:") and not as_json:  # no command was named, so its help is shown
        print(problem, file=sys.stderr)
        return BadUsage.exit_code
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "answerback"
    usage = BadUsage(problem=problem.rstrip(".") + ".", command=path)
    output.refusal(usage, as_json=as_json)
    return usage.exit_code


def main() -> None:
    """Carry out the command of this process and end it."""
    sys.exit(run(sys.argv[1:]))
