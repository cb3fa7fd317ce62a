"""A stand-in for the application: keeps a pid and a state file as a gateway does, and takes signals.

Its own log, `/tmp/stand-in/NAME`, is what tests believe: one line a life, with its start by the kernel.

STAND_IN_NAME    the log's name
STAND_IN_YOUNG   seconds before it has its handlers and says that it runs
STAND_IN_DRAIN   seconds of work that it finishes when asked to; then it exits with STAND_IN_EXIT (75)
STAND_IN_STOP    seconds that SIGTERM takes; it then exits with STAND_IN_STATUS (1)
STAND_IN_DEAF    signals without effect, by name
STAND_IN_HELPER  seconds before a helper service of its own restarts its unit (STAND_IN_UNIT)
STAND_IN_NOTIFY  tells its manager that it is ready
STAND_IN_FORK    a file for the pid of a child; the parent ends
Files in its home: `end` ("SECONDS STATUS": a start ends by itself), `end-once` (the same, one start),
`mute`, `old-record` (says nothing new), `says` (a state in place of running), `unready`.
"""
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time

words = sys.argv[1:]
profile = words[words.index("-p") + 1] if "-p" in words else "default"
root = os.environ.get("HERMES_HOME") or os.path.expanduser("~/.hermes")
home = root if profile == "default" else os.path.join(root, "profiles", profile)
get = lambda name, default="0": os.environ.get("STAND_IN_" + name, default)
has = lambda name: os.path.exists(os.path.join(home, name))

if get("FORK", ""):
    if child := os.fork():
        open(get("FORK"), "w").write(f"{child}\n")
        time.sleep(0.2)
        os._exit(0)
    os.setsid()

pid = os.getpid()
start = int(open("/proc/self/stat").read().rsplit(") ", 1)[1].split()[19])


def log(event):
    line = {"pid": pid, "start": start, "event": event, "home": home, "mark": get("MARK", ""),
            "kind": next(word for word in words if word in ("gateway", "serve", "dashboard"))}
    fd = os.open("/tmp/stand-in/" + get("NAME", profile), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, (json.dumps(line) + "\n").encode())
    os.close(fd)


def write(name, value):
    path = os.path.join(home, name)
    with open(path + ".new", "w") as file:
        json.dump(value, file)
    os.rename(path + ".new", path)


def say(state, agents=0):
    if "gateway" not in words or has("mute") or has("old-record"):
        return
    who = {"pid": pid, "kind": "hermes-gateway", "start_time": start}
    write("gateway.pid", who)
    write("gateway_state.json", {**who, "gateway_state": state, "active_agents": agents})


def drain(*_):
    say("draining", 1)
    log("draining")
    if get("HELPER", ""):
        unit = get("UNIT")
        name = unit.removesuffix(".service") + f"-planned-restart-{pid}"
        text = f"while [ -d /proc/{pid} ]; do sleep 0.02; done; sleep {get('HELPER')}; " \
            f"systemctl --user reset-failed {unit}; systemctl --user restart {unit}"
        subprocess.run(["systemd-run", "--user", "--collect", "--quiet", "--unit", name, "sh", "-c", text])
    time.sleep(float(get("DRAIN")))
    sys.exit(int(get("EXIT", "75")))


def end(*_):
    time.sleep(float(get("STOP")))
    sys.exit(int(get("STATUS", "1")))


def end_by_file(name):
    after, status = open(os.path.join(home, name)).read().split()
    if name == "end-once":
        os.unlink(os.path.join(home, name))
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: sys.exit(1))
    if float(after) > 1:
        ready("running")
    time.sleep(float(after))
    sys.exit(int(status))


def ready(state):
    say(state)
    log("serves" if state == "running" and not has("mute") and not has("old-record") else "ill")
    if get("NOTIFY", "") and not has("unready"):
        address = os.environ["NOTIFY_SOCKET"]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(b"READY=1", address.replace("@", "\0", 1) if address[0] == "@" else address)


log("started")
if has("mute"):
    for name in ("gateway.pid", "gateway_state.json"):
        if has(name):
            os.unlink(os.path.join(home, name))
for name in ("end", "end-once"):
    if has(name):
        end_by_file(name)
lock = open(os.path.join(home, "gateway.lock"), "a")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    pass
time.sleep(float(get("YOUNG")))
deaf = get("DEAF", "").split()
for name, handler in (("USR1", drain), ("TERM", end)):
    if name == "USR1" and "UNCAUGHT" in deaf:
        continue
    signal.signal(getattr(signal, "SIG" + name), (lambda *_: None) if name in deaf else handler)
ready(open(os.path.join(home, "says")).read().strip() if has("says") else "running")
while True:
    signal.pause()
