"""Reads conversations that Plait saved (version 1), prints a line for each node, and fails if a digest is wrong.

    python3 read.py conversation.json …

README.md beside this file is the specification. It needs Python 3.8 and no package."""
import hashlib, json, sys

# What a digest covers of a body, a block and a part of them, in the order in which it is hashed. A block of an unknown
# type may be named like a kind, and a kind like a block.
KINDS = {
    "system": "name text", "tools": "tools withdrawn", "message": "role blocks", "compaction": "summary",
    "tool_execution": "index tool input state ran note deferred result is_error child", "sub_graph": "title heads summary",
    "stop_reason": "reason detail", "custom": "name json"}
BLOCKS = {
    "text": "type text extra", "image": "type source extra", "document": "type source title extra",
    "thinking": "type text signature redacted extra", "opaque": "type api json", "cut_tool_use": "type name input",
    "tool_use": "type name input extra", "tool_result": "type call_id content is_error extra"}
PARTS = {"tool": "name description schema extra", "ran": "tool input", "source": "media_type data text url file_id", "extra": "api json"}

class Number(str):
    """A number as it was written: 1 and 1.0 differ."""

def unique(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("two members of one name")
    return dict(pairs)

def parse(text):
    def refuse(name): raise ValueError(name)
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=refuse,
                      object_pairs_hook=unique)

def depth(v):
    return 1 + max(map(depth, v.values() if isinstance(v, dict) else v), default=0) if isinstance(v, (dict, list)) else 0

def canonical(v):
    if isinstance(v, dict):  # sorted as UTF-16
        names = sorted(v, key=lambda k: k.encode("utf-16-be"))
        return "{%s}" % ",".join(canonical(k) + ":" + canonical(v[k]) for k in names)
    if isinstance(v, list):
        return "[%s]" % ",".join(map(canonical, v))
    return str(v) if isinstance(v, Number) else json.dumps(v, ensure_ascii=False)

def free(o, name):
    """The member name of o, which holds any JSON, or that JSON as a string in the member name_text."""
    if name + "_text" in o:
        try:
            v = parse(o[name + "_text"])
            text = canonical(v)
            if depth(v) <= 256 and text.encode():  # no lone surrogates
                return name, text
        except (ValueError, RecursionError):
            pass
        return name + "_text", canonical(o[name + "_text"])
    return name, canonical(o[name])

def hashed(o, members, nodes, refer):
    """The object o as it is hashed, which covers its members."""
    def block(b):
        if b["type"] == "unknown":
            return free(b, "json")[1]
        return hashed(b, BLOCKS[b["type"]], nodes, refer) if b["type"] in BLOCKS else canonical(b)
    def listed(f, items): return "[%s]" % ",".join(map(f, items))
    out = []
    for name in members.split():
        any_json = name in ("input", "json", "schema")
        if name not in o and not (any_json and name + "_text" in o) and name != "call_id":
            continue
        v = o.get(name)
        if any_json: name, v = free(o, name)
        elif name in ("source", "extra", "ran"): v = hashed(v, PARTS[name], nodes, refer)
        elif name == "tools": v = listed(lambda t: hashed(t, PARTS["tool"], nodes, refer), v)
        elif name in ("child", "heads"): v = listed(lambda id: canonical(nodes[id]["digest"]), v)
        elif name == "call_id": v = canonical(refer(v or ""))
        elif name in ("blocks", "result", "content", "summary") and isinstance(v, list): v = listed(block, v)
        else: v = canonical(v)
        out.append(canonical(name) + ":" + v)
    return "{%s}" % ",".join(out)

def references(n, nodes):
    """How a result of the message n refers to its call: by place among the calls of the message that it answers."""
    parents = [nodes[nodes[p]["parents"][0]] if nodes[p]["kind"] == "tool_execution" and len(nodes[p]["parents"]) == 1
               else nodes[p] for p in n["parents"]]
    said = [p["body"] for p in parents if p["kind"] == "message" and p["body"]["role"] == "assistant"]
    calls = [b.get("id", "") for b in (said[0]["blocks"] if said else []) if b["type"] == "tool_use"]
    def refer(id):
        if n["body"]["role"] == "user" and id in calls:
            at = calls.index(id)
            calls[at] = None  # results of one ID answer its calls in order
            return "#%d" % at
        return "=" + id
    return refer

def message(n, nodes):
    """The body of a message with the results that it shares with its parents."""
    def whole(b):
        if b["type"] != "tool_result" or "result_of" not in b:
            return b
        e = nodes[n["parents"][int(b["result_of"])]]["body"]
        result = {"type": "tool_result", "call_id": e.get("call_id", ""), "content": e["result"]}
        return {**result, "is_error": True} if e.get("is_error") else result
    return {**n["body"], "blocks": [whole(b) for b in n["body"]["blocks"]]}

def digest(n, nodes):
    body, refer = (message(n, nodes), references(n, nodes)) if n["kind"] == "message" else (n["body"], None)
    data = b"plait.node.v1\0" + n["kind"].encode() + b"\0" + len(n["parents"]).to_bytes(4, "big")
    data += b"".join(bytes.fromhex(nodes[p]["digest"][7:]) for p in n["parents"])
    return "sha256:" + hashlib.sha256(data + hashed(body, KINDS[n["kind"]], nodes, refer).encode()).hexdigest()

def check(path):
    """Prints each node of a file, and returns how many have a wrong digest."""
    with open(path, encoding="utf-8") as file:
        document = parse(file.read())
    if document["format"] != "plait" or document["version"] != "1":
        sys.exit(path + " is not a conversation of version 1")

    nodes, wrong = {}, 0
    for n in document["nodes"]:
        nodes[n["id"]] = n
        known = n["kind"] in KINDS and not n.get("redacted")
        right = not known or digest(n, nodes) == n["digest"]
        print(n["id"], n["kind"], ("ok" if known else "not checked") if right else "WRONG")
        wrong += not right
    return wrong

if __name__ == "__main__":
    try:
        sys.exit(min(1, sum(map(check, sys.argv[1:]))))
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as e:
        sys.exit("cannot read the conversation: %s: %s" % (type(e).__name__, e))
