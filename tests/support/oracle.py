"""Runs the application's own migration over many homes, in one process, and tells what came of it.

Usage: python oracle.py ROOT. Every folder below ROOT/oracle is a home to migrate; ROOT/ours holds the same
homes as this project migrated them. Prints one line of JSON a home: what both of them mean to the program.
"""
import base64
import contextlib
import datetime
import io
import json
import os
import sys

root = sys.argv[1]
names = sorted(os.listdir(os.path.join(root, "oracle")))
# Durability is not what is compared here.
os.fsync = lambda fd: None
# Importing it already fills the home that it finds.
os.environ["HERMES_HOME"] = os.path.join(root, "import")
os.makedirs(os.environ["HERMES_HOME"])

from hermes_cli.config import DEFAULT_CONFIG, fast_safe_load, migrate_config  # noqa: E402

try:
    from agent.secret_scope import load_env_file
except ImportError:
    load_env_file = None

clean = dict(os.environ)


def plain(value):
    """A value with its types, as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, (datetime.date, datetime.datetime)):
        return {"date": value.isoformat()}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return {"other": str(value)}


def env(path):
    """The variables that the program would read."""
    found = {}
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    for line in lines:
        line = line.strip()
        if not line or line.startswith("#") or "=" not in line:
            continue
        key, _, value = line.removeprefix("export ").partition("=")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[key.strip()] = value
    return found


def look(home):
    """What a home means."""
    seen = {"env": env(os.path.join(home, ".env"))}
    seen["curator"] = os.path.isdir(os.path.join(home, "logs", "curator"))
    try:
        with open(os.path.join(home, "SOUL.md"), encoding="utf-8-sig") as file:
            seen["soul"] = file.read()
    except FileNotFoundError:
        seen["soul"] = None
    try:
        with open(os.path.join(home, "config.yaml"), encoding="utf-8-sig") as file:
            seen["config"] = plain(fast_safe_load(file))
    except Exception as error:
        seen["error"] = f"{type(error).__name__}: {error}"
    return seen


print(json.dumps({"expects": DEFAULT_CONFIG["_config_version"]}))


def migrate(said):
    """Runs the migration of the home that is set."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            results = migrate_config(interactive=False, quiet=True)
        said["warnings"] = [str(warning) for warning in results.get("warnings", [])]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


for name in names:
    home = os.path.join(root, "oracle", name)
    os.environ.clear()
    os.environ.update(clean)
    os.environ["HERMES_HOME"] = home
    said = {"name": name, "before": look(home)}
    config = os.path.join(home, "config.yaml")
    with open(config, "rb") as file:
        original = file.read()
    raised = migrate(said)
    if raised and "has a formatting error" in raised and "config" in said["before"]:
        # The newest program cannot read what it wrote itself, when a section is emptied below a comment.
        # Without comments it can.
        with open(config, "w", encoding="utf-8") as file:
            json.dump(fast_safe_load(original), file, default=str)
        said["retried"] = raised
        raised = migrate(said)
    if raised:
        said["raised"] = raised
    said["oracle"] = look(home)
    said["ours"] = look(os.path.join(root, "ours", name))
    print(json.dumps(said), flush=True)
