#!/usr/bin/python
# SPDX-License-Identifier: MIT
"""Runs update(8) on a machine and hands back its receipt."""

DOCUMENTATION = r"""
---
module: fleet_update
short_description: Bring every profile home of a machine up to date, and prove it
description:
  - Runs C(update) on the machine. It migrates the configuration of every profile home to the version that the
    installed code expects, restarts every runtime that still serves the old state, and ends with a receipt.
  - The task fails unless the receipt says clean. It never changes code, and never starts what did not run.
options:
  executable:
    description: Where the program is on the machine.
    type: path
    default: /usr/bin/update
  homes:
    description: Only these homes.
    type: list
    elements: path
    default: []
  users:
    description: Only these users' homes.
    type: list
    elements: str
    default: []
  profiles:
    description: Only these profiles.
    type: list
    elements: str
    default: []
  restart:
    description: Which runtimes are restarted. Where nothing is said, the machine's own configuration decides.
    type: str
    choices: [stale, always, never]
  migrate:
    description: Whether homes are migrated.
    type: bool
    default: true
  to:
    description: Version for homes whose installs do not say one.
    type: int
  jobs:
    description: How many restarts run side by side.
    type: int
  max_failures:
    description: How many failures end the restarts, after the first wave.
    type: int
  deadline:
    description: How long the run may take, such as V(10m).
    type: str
  lock_timeout:
    description: How long to wait for another run on the machine.
    type: str
    default: 10m
  config:
    description: Read this configuration file alone.
    type: path
  state_dir:
    description: Where receipts and snapshots are kept.
    type: path
attributes:
  check_mode:
    support: full
    description: Shows what a run would do, and changes nothing.
  diff_mode:
    support: full
    description: Shows the values that change in each home, secrets masked.
author:
  - the fleet-update authors
"""

EXAMPLES = r"""
- name: Bring the machine up to date
  fleet.update.fleet_update:

- name: Only migrate the homes of two users; their runtimes are restarted at night
  fleet.update.fleet_update:
    users: [ann, bob]
    restart: never
"""

RETURN = r"""
receipt:
  description: The receipt of the run, or in check mode the plan; see fleet-update-receipt(5).
  returned: when the program printed one
  type: dict
verdict:
  description: The word of the verdict, or V(planned) in check mode.
  returned: when the program printed a receipt
  type: str
  sample: clean
exit_status:
  description: The exit status of the program; see update(8).
  returned: always
  type: int
problems:
  description: One line for each row that is not fine, with what a person can do.
  returned: when the program printed a receipt
  type: list
  elements: str
"""

import json

from ansible.module_utils.basic import AnsibleModule

FINE_HOMES = ("migrated", "current", "unconfigured", "skipped")
FINE_RUNTIMES = ("restarted", "current", "stopped", "deferred", "skipped")


def command(params, check_mode):
    """The argv: never a shell, so no value can be more than a value."""
    argv = [params["executable"]]
    argv += ["plan", "--check", "--json"] if check_mode else ["apply", "--json"]
    for flag, values in (("--home", params["homes"]), ("--user", params["users"]), ("--profile", params["profiles"])):
        for value in values:
            argv.append("%s=%s" % (flag, value))
    for flag in ("restart", "to", "jobs", "max_failures", "deadline", "lock_timeout", "config", "state_dir"):
        if params[flag] is not None:
            argv.append("--%s=%s" % (flag.replace("_", "-"), params[flag]))
    if not params["migrate"]:
        argv.append("--no-migrate")
    return argv


def problems(receipt, planned):
    """What is not fine, one line each."""
    lines = []
    for row in receipt.get("homes", []):
        if row["outcome"] not in FINE_HOMES and not row.get("accepted"):
            lines.append(line("home %s" % row["path"], row))
    for row in receipt.get("runtimes", []):
        pending = planned and row["outcome"] == "unaccounted" and row.get("action")
        if row["outcome"] not in FINE_RUNTIMES and not row.get("accepted") and not pending:
            lines.append(line("%s %s of %s" % (row["kind"], row.get("unit") or row["id"], row["user"]), row))
    for row in receipt.get("collectors", []):
        if row["outcome"] == "unverified":
            lines.append(line(row["name"], row))
    return lines


def line(what, row):
    text = "%s: %s" % (what, row["outcome"])
    if row.get("reason"):
        text += " (%s)" % row["reason"]
    if row.get("remedy"):
        text += "; do: %s" % row["remedy"]
    return text


def changes(receipt, planned):
    """Whether anything was changed, or would be."""
    if any(row["outcome"] == "migrated" for row in receipt.get("homes", [])):
        return True
    if planned:
        return any(row["outcome"] == "unaccounted" and row.get("action") for row in receipt.get("runtimes", []))
    # A restart that failed has changed the machine, too.
    return any(row.get("began_at") for row in receipt.get("runtimes", []))


def diff(receipt):
    """The values that change, home by home; the program has masked secrets."""
    documents = []
    for row in receipt.get("homes", []):
        if not row["changes"]:
            continue
        before, after = [], []
        for change in row["changes"]:
            for side, lines in (("before", before), ("after", after)):
                if change[side] is not None:
                    lines.append("%s: %s\n" % (change["path"], json.dumps(change[side], sort_keys=True)))
        documents.append(
            {
                "before_header": row["path"],
                "after_header": row["path"],
                "before": "".join(before),
                "after": "".join(after),
            }
        )
    return documents


def main():
    module = AnsibleModule(
        argument_spec={
            "executable": {"type": "path", "default": "/usr/bin/update"},
            "homes": {"type": "list", "elements": "path", "default": []},
            "users": {"type": "list", "elements": "str", "default": []},
            "profiles": {"type": "list", "elements": "str", "default": []},
            "restart": {"type": "str", "choices": ["stale", "always", "never"]},
            "migrate": {"type": "bool", "default": True},
            "to": {"type": "int"},
            "jobs": {"type": "int"},
            "max_failures": {"type": "int"},
            "deadline": {"type": "str"},
            "lock_timeout": {"type": "str", "default": "10m"},
            "config": {"type": "path"},
            "state_dir": {"type": "path"},
        },
        supports_check_mode=True,
    )
    planned = module.check_mode
    status, stdout, stderr = module.run_command(command(module.params, planned))
    try:
        receipt = json.loads(stdout)
    except ValueError:
        receipt = None
    if not isinstance(receipt, dict):
        # Refused, locked or bad input: nothing was printed, and one line on standard error says why.
        module.fail_json(msg=stderr.strip() or "update ended with %d and no receipt" % status, exit_status=status)
    # Not called `rc`: a status that is not 0 there is a failure to Ansible, and 5 is a plan with work.
    result = {
        "changed": changes(receipt, planned),
        "exit_status": status,
        "receipt": receipt,
        "verdict": "planned" if planned else receipt["verdict"]["outcome"],
        "problems": problems(receipt, planned),
    }
    if module._diff:
        result["diff"] = diff(receipt)
    # 5: a plan with something to do.
    if status == 0 or (planned and status == 5):
        module.exit_json(**result)
    msg = "; ".join(result["problems"]) or stderr.strip() or "update ended with %d" % status
    module.fail_json(msg="not clean: %s" % msg, **result)


if __name__ == "__main__":
    main()
