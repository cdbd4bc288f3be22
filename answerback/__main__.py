"""Lets `python -m answerback` do what the `answerback` command does."""

from answerback.gateway.doors.cli import main

if __name__ == "__main__":
    main()
