"""What check-upgrade.py needs of nova, alembic and SQLAlchemy, as the environment has it."""

import contextlib
import datetime
import os
import types


class CommandError(Exception):
    """What alembic raises for a revision that it does not have."""


class ScriptDirectory:
    """Has the revisions in KNOWN."""

    def __init__(self, path):
        self.path = path

    def get_revision(self, revision):
        if revision not in os.environ["KNOWN"].split():
            raise CommandError(f"Can't locate revision identified by '{revision}'")
        return revision


def db_version(database="main", context=None):
    return os.environ[database.upper()] or None


class Mappings:
    @staticmethod
    def get_all(_):
        return [types.SimpleNamespace(name="cell0"), types.SimpleNamespace(name="cell1")]


@contextlib.contextmanager
def target_cell(_, cell):
    yield cell


class Engine:
    @contextlib.contextmanager
    def connect(self):
        yield self

    def execute(self, _):
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
        rows = (row.split("=") for row in os.environ["SERVICES"].split())
        return [(int(number), binary, host, now - datetime.timedelta(seconds=int(ago[0])) if ago else None) for binary, number, host, *ago in rows]


class Query:
    def where(self, *_):
        return self
