#!/usr/bin/env python3
"""Checks whether the nova of this image can take over the databases of the configuration.
With the argument "computes", whether no compute of the cell is older than the image.
If releases are compared, deployed.json next to the script lists what should run the deployed
release: the StatefulSet of the super conductor, cells, and hosts of computes.

Nothing is changed. What is wrong, or should be looked at, is left as the termination
message: a reason in the first line, and what it is about after it. None of it is secret.
"""

import datetime
import json
import os
import re
import subprocess
import sys

import sqlalchemy as sa
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from nova import config, context, db, objects, version
from nova.db import migration
from nova.db.main import api as main_db
from nova.objects import cell_mapping
from nova.objects.service import OLDEST_SUPPORTED_SERVICE_VERSION, SERVICE_VERSION, SERVICE_VERSION_ALIASES

DIRECTORY = os.path.dirname(os.path.abspath(__file__))
DEPLOYED = os.path.join(DIRECTORY, "deployed.json")
ARGUMENTS = ["--config-file", "/dev/null", "--config-dir", DIRECTORY]
MESSAGE = os.environ.get("TERMINATION_LOG", "/dev/termination-log")


def leave(reason, text):
    """Leaves what was found for the operator, and in the log."""
    print(reason, text, sep=": ")
    with open(MESSAGE, "w", encoding="utf-8") as out:
        out.write(f"{reason}\n{text}")


def is_known(database, revision):
    """Reports whether the image has a revision of the schema of a database."""
    scripts = ScriptDirectory(os.path.join(os.path.dirname(db.__file__), database, "migrations"))
    try:
        return revision is None or scripts.get_revision(revision) is not None
    except CommandError:
        return False


def records_of(ctxt=None):
    """Returns the services of a cell, by default that of the configuration, as (version, binary, host, when it has reported)."""
    engine = main_db.get_engine(context=ctxt)
    table = sa.Table("services", sa.MetaData(), autoload_with=engine)
    query = sa.select(table.c.version, table.c.binary, table.c.host, table.c.last_seen_up).where(table.c.deleted == 0)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(query)]


def services_of(ctxt=None):
    """Returns the services of a cell, by default that of the configuration, as (version, binary, host)."""
    return sorted(record[:3] for record in records_of(ctxt))


def cells():
    """Returns the name of each mapped cell, with a context that reads its database."""
    ctxt = context.get_admin_context()
    for cell in cell_mapping.CellMappingList.get_all(ctxt):
        with context.target_cell(ctxt, cell) as target:
            yield cell.name, target


def too_old():
    """Returns what the image is older than, empty if it is not."""
    image = f"the image has nova {version.version_string()}"
    revision = migration.db_version("api")
    if not is_known("api", revision):
        return f"{image}, which does not know revision {revision} of the schema of the API database"
    for name, target in cells():
        revision = migration.db_version("main", context=target)
        if not is_known("main", revision):
            return f"{image}, which does not know revision {revision} of the schema of {name}"
        newest, binary, _ = max(services_of(target), default=(0, "", ""))
        if newest > SERVICE_VERSION:
            return f"{image} with service version {SERVICE_VERSION}, and {name} has {binary} of version {newest}"
    return ""


def first_of(names):
    """Returns five of the names, and how many there are besides."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def computes_before(oldest, services, what):
    """Returns the message that names the computes whose version is before the oldest supported one, empty if there are none."""
    hosts = sorted(host for number, binary, host in services if binary == "nova-compute" and number < oldest)
    if not hosts:
        return ""
    return f"{len(hosts)} computes are older than {what} service version {oldest}: {first_of(hosts)}"


def unsupported_computes():
    """Returns the computes next to which the image does not start, empty if there are none."""
    services = [service for _, target in cells() for service in services_of(target)]
    oldest = SERVICE_VERSION_ALIASES[OLDEST_SUPPORTED_SERVICE_VERSION]
    return computes_before(oldest, services, f"nova {version.version_string()} supports, which is {OLDEST_SUPPORTED_SERVICE_VERSION} with")


def older_computes():
    """Returns the computes of the cell that are older than the image, empty if there are none."""
    return computes_before(SERVICE_VERSION, services_of(), f"nova {version.version_string()} with")


def is_up(reported):
    """Reports whether a service reports to nova: every ten seconds, and the clock of its host may differ."""
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    return reported is not None and now - reported < datetime.timedelta(minutes=2)


def older_services():
    """Returns the services that are older than the release that is deployed, empty if none is.

    What that is the super conductor has recorded when it started. A conductor or scheduler that is
    down may be a pod that is not wanted any more, which nova does not forget. Newer services are
    what the update brings the others to.
    """
    if not os.path.exists(DEPLOYED):
        return ""
    with open(DEPLOYED, encoding="utf-8") as file:
        deployed = json.load(file)
    records = [record for name, target in cells() if name in deployed["cells"] for record in records_of(target)]
    pod = re.compile(re.escape(deployed["conductor"]) + r"-\d+")
    release = max((number for number, binary, host, _ in records if binary == "nova-conductor" and pod.fullmatch(host)), default=0)
    older = sorted(
        f"{binary} on {host} ({number})"
        for number, binary, host, reported in records
        if number < release and (host in deployed["computes"] if binary == "nova-compute" else binary in ("nova-conductor", "nova-scheduler") and is_up(reported))
    )
    if not older:
        return ""
    return f"{len(older)} services are older than the release that is deployed, which has service version {release}: {first_of(older)}"


def findings(table, result):
    """Returns the checks of nova-status that have a result, with their details."""
    text = "\n".join(line.strip("| ").rstrip() for line in table.splitlines())
    found = []
    for check in re.findall(rf"^Check: (.*)\nResult: {result}\nDetails: ((?:.|\n(?!\+-))*)", text, re.MULTILINE):
        details = re.sub(r" *(due to error:|For more details).*", "", " ".join(check[1].split()))
        found.append(f"{check[0]}: {details}".rstrip("."))
    return "; ".join(found)


def main():
    config.parse_args(["nova-status", *ARGUMENTS])
    objects.register_all()
    if sys.argv[1:] == ["computes"]:
        if text := older_computes():
            leave("ComputesOlder", text)
        return 2 if text else 0
    if text := too_old():
        leave("ImageTooOld", text)
        return 2
    if text := unsupported_computes():
        leave("ComputesTooOld", text)
        return 2
    if text := older_services():
        leave("ServicesOlder", text)
        return 2
    ran = subprocess.run(["nova-status", *ARGUMENTS, "upgrade", "check"], stdout=subprocess.PIPE, text=True)
    print(ran.stdout)
    if ran.returncode == 2:
        leave("UpgradeCheckFailed", findings(ran.stdout, "Failure"))
    elif ran.returncode == 1:
        leave("UpgradeWarnings", findings(ran.stdout, "Warning"))
        return 0
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
