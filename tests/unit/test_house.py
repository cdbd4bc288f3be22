"""The house keeps its rules: sizes, names, what shadows nothing, and what the wheel carries."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import answerback

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "answerback"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {"channels", "threading", "waits", "store", "gateway"}
SHARED = {"model", "errors", "client"}
LONGEST = 350
UNFINISHED = re.compile(r"\b(TO[D]O|FIXM[E])\b")
TEXTS = {".cfg", ".css", ".html", ".js", ".json", ".md", ".py", ".sh", ".toml", ".yaml", ".yml", ""}
WHICH_THREADING = (
    "import threading, answerback.threading; print(threading.__file__, answerback.__file__, sep='\\n')"
)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _own_files() -> Iterator[Path]:
    """Every text file of the project, without the given cases and what tools leave behind."""
    for path in ROOT.iterdir():
        if path.is_file():
            yield path
    for folder in ("answerback", "bench", "docs", "examples", "tests", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in TEXTS and "__pycache__" not in path.parts:
                yield path


def _run(*words: str, cwd: Path, **environment: str) -> str:
    """What a command prints; it runs without the safe path unless the environment says so."""
    kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONSAFEPATH", "PYTHONPATH"}}
    done = subprocess.run(
        words, cwd=cwd, env=kept | environment, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _standard(module_file: str | None) -> bool:
    return Path(str(module_file)).resolve().parent == Path(sysconfig.get_paths()["stdlib"]).resolve()


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_module_is_short_or_says_why_it_is_long(path: Path) -> None:
    lines = path.read_text().splitlines()
    excused = any(line.startswith("# long because: ") for line in lines[:5])
    assert len(lines) <= LONGEST or excused


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_module_says_what_it_is_in_one_line(path: Path) -> None:
    first, *rest = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines() or [""]
    assert first, "no docstring"
    assert not rest or rest[0] == "", "the first sentence of the docstring does not fit on one line"


def test_the_package_holds_the_rooms_and_what_they_share_and_nothing_else() -> None:
    children = {path.stem for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert children == ROOMS | SHARED | {"__init__", "__main__", "py"}
    assert (PACKAGE / "py.typed").is_file()


def test_tests_are_no_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_nothing_is_left_for_later_in_the_text() -> None:
    unfinished = [_name(path) for path in _own_files() if UNFINISHED.search(path.read_text(errors="replace"))]
    assert unfinished == []


def test_the_version_is_the_one_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert answerback.__version__ == project["version"]


def test_importing_the_package_imports_nothing_else_of_it_or_from_outside() -> None:
    code = "import sys; old = set(sys.modules); import answerback; print(*sorted(set(sys.modules) - old))"
    assert _run(sys.executable, "-c", code, cwd=ROOT).split() == ["answerback"]


def test_threading_is_the_standard_one_under_pytest() -> None:
    assert _standard(threading.__file__)


@pytest.mark.parametrize("safe", ["", "1"])
def test_threading_is_the_standard_one_at_the_root(safe: str) -> None:
    found, package = _run(sys.executable, "-c", WHICH_THREADING, cwd=ROOT, PYTHONSAFEPATH=safe).splitlines()
    assert _standard(found)
    assert Path(package).parent == PACKAGE


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("build", "--wheel", "--no-isolation", "--outdir", str(folder))
    _run(sys.executable, "-P", "-m", *build, str(ROOT), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder the wheel is installed in, apart from the source."""
    folder = tmp_path_factory.mktemp("installed")
    quiet = ("--quiet", "--no-cache", "--offline", "--no-deps")
    into = ("--python", sys.executable, "--target", str(folder))
    _run(sys.executable, "-m", "uv", "pip", "install", *quiet, *into, str(wheel), cwd=folder)
    return folder


def test_the_wheel_carries_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    source = {_name(path) for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == source


def test_threading_is_the_standard_one_from_the_wheel(installed: Path) -> None:
    found, package = _run(
        sys.executable, "-P", "-c", WHICH_THREADING, cwd=installed, PYTHONPATH=str(installed)
    ).splitlines()
    assert _standard(found)
    assert Path(package).parent == installed / "answerback"


@pytest.mark.parametrize(
    "start", [["bin/answerback"], [sys.executable, "-m", "answerback"]], ids=["script", "-m"]
)
def test_the_wheel_starts_as_a_command(installed: Path, start: list[str]) -> None:
    assert "Usage" in _run(*start, "--help", cwd=installed, PYTHONPATH=str(installed))
