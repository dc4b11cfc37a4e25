"""Runs a command, and stops its test processes for a moment, again and again, as a busy machine does.

    .ci/hiccup.py SEED go test ./...

A test that depends on how long something takes fails here sooner than on a quiet machine. The processes of the
compiler and the like are left alone. The exit code is that of the command.
"""

import os
import random
import signal
import subprocess
import sys
import time

BUILDING = {"go", "compile", "link", "asm", "cgo", "vet", "bash", "git"}


def descendants(root):
    """Returns the running processes below root, without those in BUILDING."""
    children, names = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                stat = file.read()
        except OSError:
            continue  # it has ended

        # The name is in parentheses, and may contain some itself.
        name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :]
        children.setdefault(int(rest.split()[1]), []).append(int(entry))
        names[int(entry)] = name

    found, stack = [], [root]
    while stack:
        below = children.get(stack.pop(), [])
        stack += below
        found += [pid for pid in below if names[pid] not in BUILDING]
    return found


def send(pid, sig):
    try:
        os.kill(pid, sig)
    except OSError:
        pass  # it has ended


def main():
    chance = random.Random(int(sys.argv[1]))
    command = subprocess.Popen(sys.argv[2:])
    while command.poll() is None:
        if processes := descendants(command.pid):
            pid = chance.choice(processes)
            send(pid, signal.SIGSTOP)
            try:
                time.sleep(chance.choice([0.01, 0.05, 0.2, 0.5]))
            finally:
                send(pid, signal.SIGCONT)
        time.sleep(chance.choice([0.01, 0.05, 0.1]))
    sys.exit(command.returncode)


main()
