#!/usr/bin/env python3
"""The part of scripts/bench that asks how time and memory grow: the same commands on 1, 2, 4, 8 and 16 parts of one history.

usage: bench_growth.py DOCS HISTORY SCRATCH [--write]

The parts are links to the files of the history, taken in the order of their names. Each size has a lake of its own, which its
first command fills. The exponent is the slope of a straight line through the logarithms: 1 grows as its input does, less grows
slower. Processor time stands for time, since it depends least on what else a machine does.
"""
import datetime
import math
import os
import pathlib
import shutil
import subprocess
import sys

DEVBOY = os.environ['DEVBOY_BIN']
RSS_UNIT = 1 if sys.platform == 'darwin' else 1024
PARTS = (1, 2, 4, 8, 16)
START, END = '<!-- bench of growth: written by scripts/bench --growth -->', '<!-- bench of growth: end -->'
COMMANDS = {
    '`devboy ingest`, a new lake': ['ingest'],
    '`devboy tune from-claude-logs --tools --dry-run`': ['tune', 'from-claude-logs', '--tools', '--dry-run'],
    '`devboy replay`': ['replay'],
    '`devboy replay --planner`': ['replay', '--planner'],
    '`devboy replay --policy all`': ['replay', '--policy', 'all'],
    '`devboy tune analyze --from-claude-logs --dry-run`': ['tune', 'analyze', '--from-claude-logs', '--dry-run'],
    '`devboy report`, all days': ['report', '--since', '2000-01-01'],
    '`devboy mine edges`': ['mine', 'edges'],
}


def linked(history, to, share):
    """Links to the first files that make up this share of the history; gives their bytes."""
    files = sorted(path for path in (history / 'projects').rglob('*') if path.is_file())
    sizes = [path.stat().st_size for path in files]
    wanted, taken = sum(sizes) * share, 0
    for path, size in zip(files, sizes):
        if taken >= wanted:
            break
        place = to / path.relative_to(history)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, place)
        taken += size
    return taken


def measured(words, logs, home):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('XDG_', 'CLAUDE_', 'DEVBOY_'))}
    with open(home / 'stderr', 'wb') as err:
        child = subprocess.Popen([DEVBOY, *words, '-q', '--input-dir', str(logs)], env=dict(env, HOME=str(home), NO_COLOR='1'), cwd=home,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit('%s: exit %d\n%s' % (' '.join(words), child.returncode, (home / 'stderr').read_text()[-2000:]))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT / 1e6


def exponent(sizes, values):
    """Slope of the straight line of least squares through the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(max(value, 1e-3)) for value in values]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def table(title, unit, sizes, rows):
    head = '| %s, %s | %s | exponent |' % (title, unit, ' | '.join('%.1f GB' % (size / 1e9) for size in sizes))
    lines = [head, '| --- |' + ' --: |' * (len(sizes) + 1)]
    for name, values in rows.items():
        lines.append('| %s | %s | %.2f |' % (name, ' | '.join('%.1f' % v if v < 100 else '%.0f' % v for v in values), exponent(sizes, values)))
    return lines


def main():
    docs, history, scratch = (pathlib.Path(word) for word in sys.argv[1:4])
    sizes, times, peaks = [], {name: [] for name in COMMANDS}, {name: [] for name in COMMANDS}
    for part in PARTS:
        logs, home = scratch / 'growth-logs', scratch / 'growth-home'
        for folder in (logs, home):
            shutil.rmtree(folder, ignore_errors=True)
        home.mkdir(parents=True)
        sizes.append(linked(history, logs, part / PARTS[-1]))
        for name, words in COMMANDS.items():
            time, peak = measured(words, logs, home)
            times[name].append(time)
            peaks[name].append(peak)
            print('# %.1f GB %s: %.1f s, %.0f MB' % (sizes[-1] / 1e9, name, time, peak), file=sys.stderr)
        shutil.rmtree(logs)
        shutil.rmtree(home)
    text = '\n'.join([
        START, '', '%s, `scripts/bench --growth`, %d cores: one history and its first halves, each with a lake of its own, one run each.' % (
            datetime.date.today().isoformat(), os.cpu_count()),
        'An exponent of 1 grows as its input does.', '', *table('time', 'user + system, s', sizes, times), '',
        *table('peak memory', 'MB', sizes, peaks), '', END])
    print(text)
    if '--write' in sys.argv:
        page = docs.read_text()
        before, after = (page.split(START)[0], page.split(END)[1]) if START in page else (page.rstrip() + '\n\n', '\n')
        docs.write_text(before + text + after)


main()
