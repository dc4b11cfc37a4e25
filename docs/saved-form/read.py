"""Reads conversations that Plait saved (version 1), prints a line for each node, and fails if a checksum is wrong or
nothing can be checked.

    python3 read.py conversation.json …

README.md beside this file is the specification. It needs Python 3.8 and no package."""
import hashlib, json, re, sys

SUM = re.compile(rb'(\{"id":.*),"sum":"sha256:([0-9a-f]{64})"\},?', re.DOTALL)

def unique(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("two members of one name")
    return dict(pairs)

def check(path):
    """Prints each node of a file, and returns whether something was checked and every checksum is right."""
    with open(path, "rb") as file:
        text = file.read()
    document = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    if document["format"] != "plait" or document["version"] != 1:
        sys.exit(path + " is not a conversation of version 1")

    # A node is one line: the checksum covers its bytes up to the member "sum".
    lines = [line for line in text.split(b"\n") if line.startswith(b'{"id":')]
    if len(lines) != len(document["nodes"]):
        sys.exit(path + " was reformatted: it has not one node on a line")

    checked = wrong = 0
    for line, n in zip(lines, document["nodes"]):
        parts = SUM.fullmatch(line)
        right = not parts or hashlib.sha256(parts[1]).hexdigest() == parts[2].decode()
        erased = ", erased" if n.get("redacted") else ""
        print(n["id"], n["kind"], (("ok" if parts else "not checked") if right else "WRONG") + erased)
        checked += bool(parts)
        wrong += not right
    print("%s: %d nodes, %d checked, %d wrong" % (path, len(lines), checked, wrong))
    return checked > 0 and wrong == 0

if __name__ == "__main__":
    try:
        sys.exit(0 if all([check(path) for path in sys.argv[1:]]) else 1)
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as e:
        sys.exit("cannot read the conversation: %s: %s" % (type(e).__name__, e))
