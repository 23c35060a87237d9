#!/usr/bin/env python3
"""Make a large history of real logs: copies of them, each with ids and results of its own, so that nothing is merged.

usage: scripts/multiplied_logs.py LOGS OUT [--bytes 1GB]

LOGS is a directory with `projects/` in it. In copy number n every id (UUIDs, `msg_…`, `req_…`, `toolu_…`, ids of agents) has
other digits, and every tool result ends in n blanks more: to every reader it is another text of the same shape. Sizes, order,
times, record types and nesting stay as they are. The output is for measuring on this machine only.
"""
import argparse
import json
import os
import pathlib
import re

UUID = re.compile(r'\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-)([0-9a-f]{4})(?=[0-9a-f]{8}\b)')
PREFIXED = re.compile(r'\b((?:msg|req|toolu|srvtoolu)_(?:bdrk_|vrtx_)?)([A-Za-z0-9]{4})(?=[A-Za-z0-9]{8})')
AGENT = re.compile(r'("agentId":"|\bagent-(?:acompact-)?)([0-9a-f]{2})(?=[0-9a-f]{5})')
UNITS = {'': 1, 'KB': 1e3, 'MB': 1e6, 'GB': 1e9}


def renamed(text, copy):
    """The text with the ids of this copy."""
    text = UUID.sub(lambda m: m[1] + '%04x' % (int(m[2], 16) ^ copy), text)
    text = PREFIXED.sub(lambda m: m[1] + '%02d' % (copy + 10) + m[2][2:], text)
    return AGENT.sub(lambda m: m[1] + '%02x' % copy, text)


def padded(value, blanks):
    """Tool results with blanks at their end; everything else as it is."""
    if isinstance(value, list):
        for part in value:
            padded(part, blanks)
    elif isinstance(value, dict):
        if value.get('type') == 'tool_result':
            content = value.get('content')
            if isinstance(content, str):
                value['content'] = content + blanks
            for part in content if isinstance(content, list) else []:
                if isinstance(part, dict) and isinstance(part.get('text'), str):
                    part['text'] += blanks
        else:
            for part in value.values():
                padded(part, blanks)


def line_of(line, copy):
    if copy == 0:
        return line
    if '"tool_result"' in line:
        try:
            record = json.loads(line)
            padded(record, ' ' * copy)
            line = json.dumps(record, ensure_ascii=False, separators=(',', ':')) + '\n'
        except (ValueError, RecursionError):
            pass        # damaged lines are copied as they stand
    return renamed(line, copy)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('logs', type=pathlib.Path)
    p.add_argument('out', type=pathlib.Path)
    p.add_argument('--bytes', default='1GB')
    a = p.parse_args()
    number, unit = re.fullmatch(r'([\d.]+)(\w*)', a.bytes).groups()
    wanted, written, copy = float(number) * UNITS[unit.upper()], 0, 0
    files = sorted(f for f in a.logs.rglob('*.jsonl') if f.is_file())
    if not files:
        raise SystemExit('%s: no *.jsonl below it' % a.logs)
    while written < wanted and copy < 100:
        for source in files:
            target = a.out / renamed(str(source.relative_to(a.logs)), copy)
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(source, encoding='utf-8', errors='surrogateescape', newline='\n') as old, \
                    open(target, 'w', encoding='utf-8', errors='surrogateescape', newline='\n') as new:
                for line in old:
                    try:
                        new.write(line_of(line, copy))
                    except UnicodeEncodeError:      # half of a pair, written out by the client as \ud83d
                        new.write(renamed(line, copy))
            written += os.path.getsize(target)
            if written >= wanted:
                break
        copy += 1


if __name__ == '__main__':
    main()
