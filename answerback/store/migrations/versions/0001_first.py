"""The first schema: every table, index and trigger, frozen in one SQL file for each dialect."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Run the frozen statements; blank lines part them."""
    connection = op.get_bind()
    frozen = Path(__file__).with_name(f"0001_first.{connection.dialect.name}.sql").read_text("utf-8")
    for statement in frozen.split("\n\n"):
        connection.exec_driver_sql(statement)
