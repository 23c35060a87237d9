#!/usr/bin/env python3
"""Writes Claude Code logs of made-up people: OUT/<person>/<project>/<session>.jsonl, two finished weeks of each. Everybody polls a
tracker whose few answers come back after some other calls, which a team can learn and three days of logs can not.

usage: scripts/fleet/synthetic_team.py OUT PEOPLE [SEED]
"""

import datetime
import json
import pathlib
import random
import sys

TOOLS = ["Read", "Grep", "Bash", "Edit", "Glob", "mcp__tracker__get_issue", "mcp__tracker__poll", "mcp__wiki__search"]
COMMANDS = ["git status", "cargo test", "ls -la", "rg needle", "npm run build"]


def body(draw, tool):
    kind = draw.random()
    if tool.startswith("mcp__") and kind < 0.6:
        rows = [{"id": draw.randrange(1000), "state": draw.choice(["open", "done"])} for _ in range(draw.randrange(2, 30))]
        return json.dumps(rows)
    if kind < 0.2:
        rows = "\n".join(f"| {at} | {draw.randrange(99)} | x |" for at in range(draw.randrange(3, 20)))
        return "| a | b | c |\n| --- | --- | --- |\n" + rows
    return " ".join(f"word{draw.randrange(400)}" for _ in range(int(draw.lognormvariate(4, 1)) + 1))


def session(draw, name, start, habits):
    tool, bodies, lines, sent, fresh = draw.choice(TOOLS), [], [], 0, 12_000
    statuses = [f"{name} status {at} " + " ".join(f"word{draw.randrange(400)}" for _ in range(120)) for at in range(2)]
    for number in range(draw.randrange(10, 60)):
        tool = draw.choices(TOOLS, habits[tool])[0]
        if tool == "mcp__tracker__poll":
            text = statuses[number % len(statuses)]
        else:
            text = draw.choice(bodies) if bodies and draw.random() < 0.1 else body(draw, tool)
            bodies.append(text)
        # Somebody goes away for twenty minutes now and then: the cache is gone, and all is written again.
        if draw.random() < 0.04:
            start, sent, fresh = start + datetime.timedelta(minutes=20), 0, sent + fresh
        call, at = f"{name}-{number}", start + datetime.timedelta(seconds=7 * number)
        common = {"sessionId": name, "version": "2.1.9", "cwd": f"/home/{name}", "isSidechain": False}
        asked = {"file_path": f"/p/{draw.randrange(20)}", "command": draw.choice(COMMANDS)}
        use = {"type": "tool_use", "id": call, "name": tool, "input": asked}
        message = {"id": f"m-{call}", "role": "assistant", "model": "claude-opus-4-6", "content": [use],
                   "usage": {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": sent,
                             "cache_creation_input_tokens": fresh}}
        sent, fresh = sent + fresh, 40 + len(text) // 3
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]}
        for kind, message, offset in (("assistant", message, 0), ("user", result, 2)):
            stamp = (at + datetime.timedelta(seconds=offset)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            lines.append(json.dumps({**common, "type": kind, "uuid": f"{kind}-{call}", "parentUuid": None,
                                     "timestamp": stamp, "message": message}))
    return "\n".join(lines) + "\n"


def main():
    out, people = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    today = datetime.datetime.now(datetime.timezone.utc).replace(hour=9, minute=0, second=0, microsecond=0)
    monday = today - datetime.timedelta(days=today.weekday())
    common = {tool: [draw.random() ** 2 for _ in TOOLS] for tool in TOOLS}
    for person in range(people):
        habits = {tool: [share * draw.random() + 0.01 for share in shares] for tool, shares in common.items()}
        for week in (1, 2):
            for number in range(draw.randrange(1, 4)):
                name = f"person{person}-w{week}-{number}"
                start = monday - datetime.timedelta(weeks=week) + datetime.timedelta(days=number, minutes=person % 60)
                path = out / f"person{person}" / f"-home-person{person}" / f"{name}.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(session(draw, name, start, habits))


if __name__ == "__main__":
    main()
