"""What holds for every test: no silent skip in CI, and the same hypothesis runs everywhere."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Generator
from typing import TypeVar

import pytest
import structlog
from hypothesis import settings

from tests.databases import new_postgres, postgres

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
#: fixtures of every test that wants them
__all__ = ["new_postgres", "postgres"]

#: a test that names no home gets this empty one: nothing of the place the tests are run in is read
_NO_HOME = tempfile.TemporaryDirectory()
atexit.register(_NO_HOME.cleanup)
for _name in [name for name in os.environ if name.startswith("ANSWERBACK_") and name != "ANSWERBACK_SUITES"]:
    del os.environ[_name]
os.environ["ANSWERBACK_HOME"] = _NO_HOME.name

# Plain tracebacks: the coloured ones with every local variable take seconds each.
structlog.configure(
    processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()]
)

IN_CI = bool(os.environ.get("CI"))

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if IN_CI else "dev")


def _skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why the report is a skip, "" where it is none (an expected failure is none)."""
    if not report.skipped or hasattr(report, "wasxfail") or not isinstance(report.longrepr, tuple):
        return ""
    return report.longrepr[2].removeprefix("Skipped: ")


def _fail_in_ci(report: Report) -> Report:
    """Turn a skip for want of a system server into a failure where CI must have installed it."""
    reason = _skip_reason(report)
    if IN_CI and reason.startswith("needs "):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where nothing may be missing: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _fail_in_ci((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _fail_in_ci((yield))
