# Recipes of the house. `.venv/bin/just` runs them; `./run` makes .venv.

export PYTHONSAFEPATH := "1"
bin := justfile_directory() / ".venv/bin"

# lists the recipes
default:
    @"{{bin}}/just" --list

# everything that reads the code without running it
check: lint format types imports

# ruff's rules
lint *files:
    "{{bin}}/ruff" check {{files}}

# layout, only looked at
format *files:
    "{{bin}}/ruff" format --check {{files}}

# mypy strict over product, bench and tests
types:
    "{{bin}}/mypy"

# which room may import which
imports:
    "{{bin}}/lint-imports" --no-logo

# layout and imports put right
fmt:
    "{{bin}}/ruff" check --fix
    "{{bin}}/ruff" format

# the quick tests; words after it go to pytest
test *words:
    ./run test {{words}}

# the full counts and the coverage gate
prove: coverage
    "{{bin}}/python" -m pytest -m prove --timeout 900

# the pure rooms and the model: every branch, by unit tests alone
coverage:
    "{{bin}}/coverage" erase
    "{{bin}}/coverage" run -m pytest tests/unit -q
    "{{bin}}/coverage" combine -q
    "{{bin}}/coverage" report --fail-under=100 --include='answerback/threading/*,answerback/waits/*,answerback/model.py,answerback/model/*'

# long runs, once per issue
soak:
    "{{bin}}/python" -m pytest -m soak --timeout 0

# measures, each a ratio within one run
bench *words:
    "{{bin}}/python" -m bench {{words}}

# renews requirements.lock: `just lock` for what changed, `just lock --upgrade` for the newest of everything
lock *words:
    "{{bin}}/uv" pip compile pyproject.toml --universal --generate-hashes --all-extras --group dev --no-annotate --no-header --quiet --output-file requirements.lock {{words}}
