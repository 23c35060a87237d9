#!/usr/bin/env python3
"""Write telemetry of an invented pipeline, in the published schema, one file per session.

usage: synthetic_telemetry.py DIR --seed N --events N

The same seed gives the same bytes. Sessions are as uneven as real ones: most are short, a few hold thousands of responses
and some compactions. Endpoints follow a power law; some repeat themselves often, most hardly ever.
"""

import argparse
import os
import random

# Name, how often it is called, share of repeats, shape, usual bytes.
ENDPOINTS = [
    ("Read", 300, 0.12, "numbered_list", 5200),
    ("Edit", 180, 0.35, "prose", 600),
    ("Grep", 120, 0.08, "prose", 1900),
    ("Glob", 60, 0.06, "prose", 900),
    ("TodoWrite", 50, 0.85, "prose", 160),
    ("git_status", 45, 0.22, "prose", 700),
    ("git_log", 30, 0.10, "prose", 1800),
    ("git_diff", 30, 0.03, "prose", 4200),
    ("build_cargo", 40, 0.07, "prose", 2600),
    ("fs_list", 40, 0.05, "prose", 900),
    ("search", 40, 0.04, "prose", 1100),
    ("curl", 15, 0.09, "nested_object", 3100),
    ("mcp__gitlab__get_issues", 30, 0.15, "array_of_objects", 7200),
    ("mcp__gitlab__get_pipeline", 45, 0.45, "nested_object", 2400),
    ("mcp__github__list_pulls", 18, 0.12, "array_of_objects", 8100),
    ("mcp__k8s__get_logs", 16, 0.02, "prose", 9800),
    ("mcp__jira__search", 14, 0.10, "markdown_table", 3600),
    ("mcp__confluence__get_page", 9, 0.30, "markdown_table", 6100),
    ("web_fetch", 12, 0.05, "prose", 7000),
    ("web_search", 10, 0.02, "prose", 2500),
] + [(f"bash_tool{number}", 3, 0.05, "prose", 800) for number in range(20)]

SHELL = ("git_", "build_", "fs_", "search", "curl", "bash_")


def session(rng, number, count, start_ms):
    """The lines of one session."""
    session_hash = f"{rng.getrandbits(64):016x}"
    names = [row[0] for row in ENDPOINTS]
    weights = [row[1] for row in ENDPOINTS]
    known = {name: row for name, row in zip(names, ENDPOINTS)}
    shown = {name: [] for name in names}
    recent = []
    partition, ts = 0, start_ms
    lines = []
    for index, name in enumerate(rng.choices(names, weights, k=count)):
        _, _, repeats, shape, usual = known[name]
        ts += rng.randrange(800, 20000)
        if rng.random() < 0.002:
            partition += 1
            recent = []
        mine = shown[name]
        if mine and rng.random() < repeats:
            sha, size, baseline, saved = mine[-1 - rng.randrange(min(len(mine), 4))]
        else:
            size = max(12, int(rng.lognormvariate(0, 0.9) * usual))
            baseline = max(3, size // 4)
            saved = baseline // 5 if shape in ("array_of_objects", "markdown_table", "nested_object") else 0
            sha = f"{rng.getrandbits(128):032x}"
            mine.append((sha, size, baseline, saved))
        hit = sha in recent and size >= 200
        if not hit:
            recent = (recent + [sha])[-5:]
        layer = "L0" if hit else "L2" if saved else "L3"
        final = 13 if hit else baseline - saved
        tool = "Bash" if name.startswith(SHELL) else name
        inner = '"url","log","hash"' if shape == "nested_object" and rng.random() < 0.6 else ""
        lines.append(
            f'{{"session_hash":"{session_hash}","tool_call_id_hash":"{rng.getrandbits(32):08x}",'
            f'"tool_name_anon":"{tool}","endpoint_class":"{name}","response_chars":{size},"shape":"{shape}",'
            f'"inner_formats":[{inner}],"content_sha_prefix_hex":"{sha}","is_dedup_hit":{str(hit).lower()},'
            f'"layer_used":"{layer}","tokens_baseline":{baseline},"tokens_final":{final},'
            f'"context_partition":{partition},"is_sidechain":false,"ts_ms":{ts},"sample_rate_applied":1.0}}\n'
        )
    return session_hash, "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=1_500_000)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    os.makedirs(args.dir, exist_ok=True)
    left, number, start_ms = args.events, 0, 1_760_000_000_000
    while left > 0:
        count = min(left, max(1, int(rng.lognormvariate(4.6, 1.4))))
        start_ms += rng.randrange(60_000, 600_000)
        name, text = session(rng, number, count, start_ms)
        with open(os.path.join(args.dir, f"{name}.jsonl"), "w", encoding="utf-8") as out:
            out.write(text)
        left -= count
        number += 1


if __name__ == "__main__":
    main()
