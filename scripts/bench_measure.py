#!/usr/bin/env python3
"""The measuring part of scripts/bench, which prepares the programs and histories named in the environment.

Programs take turns (A B C, A B C, ...): one warm-up round, then the measured ones. Wall time is taken around the
process, CPU time and peak memory come from wait4. A program that is missing or fails is said to be so, never a number.
"""
import argparse
import datetime
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

DIR, ROUNDS = os.environ['BENCH_DIR'], int(os.environ['BENCH_ROUNDS'])
DEVBOY, CCUSAGE, TUNE = (os.environ.get(k, '') for k in ('DEVBOY_BIN', 'BENCH_CCUSAGE', 'BENCH_TUNE'))
RSS_UNIT = 1 if sys.platform == 'darwin' else 1024      # bytes of one unit of ru_maxrss
GENERATED = ('<!-- bench: written by scripts/bench -->', '<!-- bench: end -->')
REAL = ('<!-- bench of real logs: written by scripts/bench --logs -->', '<!-- bench of real logs: end -->')
INTRO = """# Benchmarks

The bars are ratios, measured on the same files in the same run; absolute times depend on the machine.

"""


class Program:
    """A command line with its environment. fresh: a directory that is deleted before each run."""

    def __init__(self, label, argv, env=None, fresh=None):
        self.label, self.argv, self.env, self.fresh = label, argv, env or {}, fresh
        self.runs, self.problem = [], None if argv and argv[0] and os.access(argv[0], os.X_OK) else 'absent'

    make = None     # from the number of the run to its arguments

    def run(self, scratch, keep=True):
        if self.problem:
            return
        if self.make:
            self.argv, self.count = self.make(getattr(self, 'count', 0)), getattr(self, 'count', 0) + 1
        if self.fresh:
            shutil.rmtree(self.fresh, ignore_errors=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith(('XDG_', 'CLAUDE_', 'DEVBOY_', 'BENCH_'))}
        env.update(HOME=scratch, NO_COLOR='1', **self.env)
        with open(os.path.join(scratch, 'stderr'), 'wb') as err:
            start = time.perf_counter()
            child = subprocess.Popen(self.argv, env=env, cwd=scratch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            self.problem = 'failed, exit %d' % child.returncode
        elif keep:
            self.runs.append((wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT / 1e6))

    def median(self, column):
        return None if self.problem else statistics.median(r[column] for r in self.runs)

    def row(self, floor):
        if self.problem:
            return '| %s | %s | – | – |' % (self.label, self.problem)
        wall, cpu, rss = zip(*self.runs)
        mid = statistics.median
        small = '≤ ' if max(rss) <= floor * 1.05 else ''
        return '| %s | %s (%s–%s) | %.2f (%.2f–%.2f) | %s%.0f (%.0f–%.0f) |' % (
            self.label, *map(seconds, (mid(wall), min(wall), max(wall))), mid(cpu), min(cpu), max(cpu), small, mid(rss), min(rss), max(rss))


def seconds(value):
    return '%.4f' % value if value < .1 else '%.2f' % value


def interleave(programs, scratch, rounds=ROUNDS):
    for i in range(rounds + 1):
        for p in programs:
            p.run(scratch, keep=i > 0)
        print('# round %d of %d' % (i, rounds) if i else '# warm-up', file=sys.stderr)


def facts(history):
    size = files = lines = longest = 0
    for folder, _, names in os.walk(os.path.join(history, 'projects')):
        for name in names:
            if name.endswith('.jsonl'):
                files += 1
                with open(os.path.join(folder, name), 'rb') as f:
                    for line in f:
                        size, lines, longest = size + len(line), lines + 1, max(longest, len(line))
    return '{:,} bytes, {:,} file{}, {:,} lines, longest line {:,} bytes'.format(
        size, files, '' if files == 1 else 's', lines, longest)


def bytes_of(history):
    return sum(os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk(os.path.join(history, 'projects')) for name in names if name.endswith('.jsonl'))


def version(argv):
    if not argv[0] or not os.access(argv[0], os.X_OK):
        return 'absent'
    run = subprocess.run(argv, capture_output=True, text=True)
    return (run.stdout.strip() or 'unknown').splitlines()[0].split()[-1]


def programs(history, scratch, config):
    tune = [DEVBOY, 'tune', 'from-claude-logs', '--tools', '--dry-run', '--input-dir', history, '--output', config]
    fresh, kept = os.path.join(scratch, 'fresh'), os.path.join(scratch, 'kept-' + os.path.basename(history))
    return [
        Program('`devboy tune from-claude-logs --tools --dry-run --no-lake`', tune + ['--no-lake'], {'XDG_CACHE_HOME': os.path.join(scratch, 'none')}),
        Program('the same, writing a new lake', tune, {'XDG_CACHE_HOME': fresh}, fresh),
        Program('the same, lake up to date', tune, {'XDG_CACHE_HOME': kept}),
        Program('`ccusage claude daily --offline --json`', [CCUSAGE, 'claude', 'daily', '--offline', '--json'], {'CLAUDE_CONFIG_DIR': history}),
        Program('published `tune from-claude-logs --dry-run --tools`',
                [TUNE, 'from-claude-logs', '--dry-run', '--tools', '--input-dir', os.path.join(history, 'projects'), '--output', config]),
    ]


def replays(history, scratch):
    """Replays: cold, then over the facts of a lake that the warm-up fills; grids differ only in their number of cells."""
    replay = [DEVBOY, 'replay', '--input-dir', history, '--json', '-q']
    kept = {'XDG_CACHE_HOME': os.path.join(scratch, 'facts-' + os.path.basename(history))}

    grids = []

    def grid(label, cells, *more):
        # A new value each run, so that no answer is remembered; the cells themselves cost the same.
        p = Program(label, None, kept)
        p.problem = None if os.access(DEVBOY, os.X_OK) else 'absent'
        first = 200 + 100 * len(grids)
        grids.append(p)
        p.make = lambda run: replay + list(more) + ['--sweep', 'dedup.lru_size=' + ','.join(str(5 + i % 5) for i in range(cells)),
                                                    '--sweep', 'dedup.min_body_chars=%d' % (first + run)]
        return p

    return [
        Program('`devboy replay --no-lake`', replay + ['--no-lake'], {'XDG_CACHE_HOME': os.path.join(scratch, 'none')}),
        Program('`devboy replay`, lake up to date', replay, kept),
        grid('one configuration over the facts', 1),
        grid('a grid of 20', 20),
        grid('one configuration, one thread', 1, '--threads', '1'),
        grid('a grid of 101, one thread', 101, '--threads', '1'),
        Program('`devboy replay --planner`, lake up to date', replay + ['--planner'], kept),
        Program('`ccusage claude daily --offline --json`', [CCUSAGE, 'claude', 'daily', '--offline', '--json'], {'CLAUDE_CONFIG_DIR': history}),
    ]


def mines(history, scratch):
    """Aggregates over the rows of a lake that the warm-up fills: asked for the first time, and again."""
    kept = {'XDG_CACHE_HOME': os.path.join(scratch, 'rows-' + os.path.basename(history))}

    def first(what):
        # The end of the window is another far day each run, so that no answer is remembered.
        p = Program('`devboy mine %s`, first time' % what, None, kept)
        p.problem = None if os.access(DEVBOY, os.X_OK) else 'absent'
        p.make = lambda run: [DEVBOY, 'mine', what, '-q', '--json', '--input-dir', history, '--until', '%d-01-01' % (2400 + run)]
        return p

    again = [Program('the same, asked again', [DEVBOY, 'mine', what, '-q', '--json', '--input-dir', history], kept) for what in ('edges', 'tools')]
    return [first('edges'), again[0], first('tools'), again[1]]


def policies(history, scratch):
    """Every policy at once: in one pass without a lake, then over the requests of a lake that the warm-up fills."""
    every = [DEVBOY, 'replay', '--policy', 'all', '--input-dir', history, '--json', '-q']
    kept = {'XDG_CACHE_HOME': os.path.join(scratch, 'requests-' + os.path.basename(history))}
    return [
        Program('`devboy replay --policy all --no-lake`', every + ['--no-lake'], {'XDG_CACHE_HOME': os.path.join(scratch, 'none')}),
        Program('the same, lake up to date', every, kept),
        Program('`ccusage claude daily --offline --json`', [CCUSAGE, 'claude', 'daily', '--offline', '--json'], {'CLAUDE_CONFIG_DIR': history}),
    ]


def pages(history, scratch):
    """The first page: in one pass without a lake, then over a lake that the warm-up fills."""
    page = [DEVBOY, 'report', '--input-dir', history, '--since', '2000-01-01', '-q']
    kept = {'XDG_CACHE_HOME': os.path.join(scratch, 'page-' + os.path.basename(history))}
    return [
        Program('`devboy report`, all days, `--no-lake`', page + ['--no-lake'], {'XDG_CACHE_HOME': os.path.join(scratch, 'none')}),
        Program('the same, lake up to date', page, kept),
        Program('`devboy cost --by tool,model`, lake up to date',
                [DEVBOY, 'cost', '--by', 'tool,model', '--input-dir', history, '-q'], kept),
        Program('`ccusage claude daily --offline --json`', [CCUSAGE, 'claude', 'daily', '--offline', '--json'], {'CLAUDE_CONFIG_DIR': history}),
    ]


def analyses(events, scratch):
    """Telemetry to proposals. devboy replays each of them besides; its fingerprints alone are what the published tool sums up."""
    config = os.path.join(scratch, 'analyzed', 'pipeline_config.toml')
    fresh = os.path.dirname(config)
    return [
        Program('`devboy tune analyze`, every proposal replayed', [DEVBOY, 'tune', 'analyze', '-q', '--input-dir', events, '--output', config], fresh=fresh),
        Program('`devboy mine fingerprints --from-telemetry`', [DEVBOY, 'mine', 'fingerprints', '-q', '--from-telemetry', '--input-dir', events]),
        Program('published `tune analyze`', [TUNE, 'analyze', '--input-dir', events, '--output', config], fresh=fresh),
    ]


def decisions_per_second(one, hundred, responses):
    """What 100 more cells cost, on one core: every cell decides all responses at three places, each with two sets of formats."""
    if None in (one, hundred, responses) or hundred <= one:
        return None
    return 100 * 6 * responses / (hundred - one)


def responses(history, scratch):
    run = subprocess.run([DEVBOY, 'replay', '--input-dir', history, '--json', '-q'], capture_output=True, text=True,
                         env=dict(os.environ, HOME=scratch, XDG_CACHE_HOME=os.path.join(scratch, 'facts-' + os.path.basename(history))))
    return json.loads(run.stdout)['replay']['arms'][0]['savings']['responses'] if run.returncode == 0 else None


def knapsack(scratch):
    """Solving times that `devboy encode --budget -v` reports for bodies of 1,000 parts, and the worst gap."""
    if not os.access(DEVBOY, os.X_OK):
        return None, None
    draw, times, gaps = random.Random(7), [], []
    for _ in range(200):
        parts = [{'id': i, 'title': 'word ' * draw.randint(1, 30), 'n': draw.randint(0, 10 ** draw.randint(1, 9))} for i in range(1000)]
        run = subprocess.run([DEVBOY, 'encode', '--budget', str(draw.randint(500, 30000)), '--fetch-rest', 'more()', '-v'],
                             input=json.dumps(parts), capture_output=True, text=True, env=dict(os.environ, HOME=scratch))
        found = re.search(r'solved ([\d,]+) parts in (\d+) µs, gap ([\d.]+) %', run.stderr)
        if not found:
            return None, None
        times.append(int(found[2]))
        gaps.append(float(found[3]))
    return sorted(times)[int(.99 * (len(times) - 1))] / 1000, max(gaps)


def bar(what, value, limit, unit=''):
    if value is None:
        return '| %s | not measured | %s | – |' % (what, '≤ %g%s' % (limit, unit) if limit else '–')
    shown = '%.0f' % value if unit == ' MB' else '%.1f' % value if unit else '%.3f' % value
    return '| %s | %s%s | %s | %s |' % (what, shown, unit, '≤ %g%s' % (limit, unit) if limit else '–',
                                       ('yes' if value <= limit else '**no**') if limit else '–')


def floor_bar(what, value, least_value, unit):
    if value is None:
        return '| %s | not measured | ≥ %g | – |' % (what, least_value / unit)
    return '| %s | %.1f | ≥ %g | %s |' % (what, value / unit, least_value / unit, 'yes' if value >= least_value else '**no**')


def ratio(a, b):
    return a / b if a is not None and b else None


def least(*values):
    return None if None in values else min(values)


def most(*values):
    return None if None in values else max(values)


HEAD = '| command | wall, s: median (min–max) | user + system, s | peak memory, MB |\n| --- | --: | --: | --: |\n'
BARS = ['', '| bar | measured | limit | met |', '| --- | --: | --: | :-: |']


def circumstances(load, floor):
    return [
        '%s, `%s`: one warm-up and %d rounds in turns, files in the page cache, %d cores, load %.1f at the start, %s %s.' % (
            datetime.date.today().isoformat(), os.environ.get('BENCH_COMMAND', 'scripts/bench'), ROUNDS, os.cpu_count(), load, platform.system(), platform.machine()),
        'devboy %s, ccusage %s (native binary), published tune %s.' % (
            version([DEVBOY, '--version']), version([CCUSAGE, '--version']), (os.environ.get('BENCH_TUNE_VERSION') or 'of unknown version') if TUNE else 'absent'),
        'Peak memory below %.0f MB cannot be told from that of the measuring process.' % floor]


def measure_logs(history):
    """The rows that a real history can fill."""
    load, size = os.getloadavg()[0], bytes_of(history)
    with tempfile.TemporaryDirectory(prefix='devboy-bench-') as scratch:
        nothing = Program('true', [shutil.which('true')])
        tuned = programs(history, scratch, os.path.join(scratch, 'pipeline_config.toml'))
        replayed = [p for p in replays(history, scratch) if not p.make]
        asked, paged = policies(history, scratch), pages(history, scratch)
        for group in (tuned, replayed, asked, paged, [nothing]):
            interleave(group, scratch)
    floor = nothing.median(2)
    table = lambda title, group: ['', '**%s**' % title, '', HEAD + '\n'.join(p.row(floor) for p in group)]
    cold, fresh, warm, ccusage, tune = (p.median(0) for p in tuned)
    cold_replay, warm_replay, planner, beside = (p.median(0) for p in replayed)
    all_cold, all_warm, ccusage_again = (p.median(0) for p in asked)
    page_cold, page_warm, _, ccusage_last = (p.median(0) for p in paged)
    ours = [p for p in tuned[:3] + replayed[:3] + asked[:2] + paged[:3]]
    lines = circumstances(load, floor)
    lines += table('Real logs, multiplied with ids and results of their own (' + facts(history) + ')', tuned)
    lines += table('Replay', replayed) + table('Policies', asked) + table('The page', paged)
    lines += BARS + [
        bar('cold run without lake ÷ ccusage', ratio(cold, ccusage), .6),
        bar('cold run writing a lake ÷ ccusage', ratio(fresh, ccusage), None),
        bar('cold run without lake ÷ published tune', ratio(cold, tune), None),
        bar('lake up to date ÷ the faster cold run', ratio(warm, least(cold, fresh)), .1),
        bar('cold replay ÷ ccusage', ratio(cold_replay, beside), 1.8),
        bar('replay with the lake up to date ÷ cold replay', ratio(warm_replay, cold_replay), .1),
        bar('`replay --policy all`, cold ÷ ccusage', ratio(all_cold, ccusage_again), None),
        bar('the page, cold ÷ ccusage', ratio(page_cold, ccusage_last), 2.5),
        bar('the page, lake up to date, per 600 MB of logs', page_warm and page_warm * .6e9 / size, .3, ' s'),
        *(bar('peak memory: ' + p.label, p.median(2), 300, ' MB') for p in ours),
    ]
    return '\n'.join(lines)


def measure():
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix='devboy-bench-') as scratch:
        config = os.path.join(scratch, 'pipeline_config.toml')
        nothing = Program('true', [shutil.which('true')])
        help_text = Program('`devboy --help`', [DEVBOY, '--help'])
        many = programs(os.path.join(DIR, 'many'), scratch, config)
        single = programs(os.path.join(DIR, 'single'), scratch, config)
        replayed = replays(os.path.join(DIR, 'many'), scratch)
        analyzed = analyses(os.path.join(DIR, 'events'), scratch)
        mined = mines(os.path.join(DIR, 'many'), scratch)
        asked = policies(os.path.join(DIR, 'many'), scratch)
        for group in (many, single, replayed, mined, asked, analyzed, [help_text, nothing]):
            interleave(group, scratch)
        count = responses(os.path.join(DIR, 'many'), scratch)
        solved_ms, gap_pct = knapsack(scratch)
    floor = nothing.median(2)
    cold_replay, warm_replay, one, twenty, lone, hundred, planner, beside = (p.median(0) for p in replayed)
    cold, fresh, warm, ccusage, tune = (p.median(0) for p in many)
    all_cold, all_warm, ccusage_again = (p.median(0) for p in asked)
    analyze, fingerprints, published = (p.median(0) for p in analyzed)
    head = HEAD
    lines = [
        *circumstances(load, floor),
        '', '**Many files** (' + facts(os.path.join(DIR, 'many')) + ')', '', head + '\n'.join(p.row(floor) for p in many),
        '', '**One file** (' + facts(os.path.join(DIR, 'single')) + ')', '', head + '\n'.join(p.row(floor) for p in single),
        '', '**Replay**, many files', '', head + '\n'.join(p.row(floor) for p in replayed),
        '', '**Aggregates**, many files, lake up to date', '', head + '\n'.join(p.row(floor) for p in mined),
        '', '**Policies**, many files', '', head + '\n'.join(p.row(floor) for p in asked),
        '', '**Telemetry** ({:,} events)'.format(int(os.environ['BENCH_EVENTS'])), '', head + '\n'.join(p.row(floor) for p in analyzed),
        '', '**Start**', '', head + help_text.row(floor),
        *BARS,
        bar('cold run without lake ÷ ccusage, many files', ratio(cold, ccusage), .75),
        bar('cold run writing a lake ÷ ccusage, many files', ratio(fresh, ccusage), .75),
        bar('cold run without lake ÷ published tune, many files', ratio(cold, tune), None),
        bar('cold run without lake ÷ ccusage, one file', ratio(single[0].median(0), single[3].median(0)), None),
        bar('lake up to date ÷ the faster cold run, many files', ratio(warm, least(cold, fresh)), .1),
        bar('peak memory, many files', most(*(p.median(2) for p in many[:3])), 300, ' MB'),
        bar('peak memory, one file', most(*(p.median(2) for p in single[:3])), 300, ' MB'),
        bar('cold replay ÷ ccusage, many files', ratio(cold_replay, beside), 2.5),
        bar('replay with the lake up to date ÷ cold replay', ratio(warm_replay, cold_replay), .1),
        bar('a grid of 20 ÷ one configuration', ratio(twenty, one), 2),
        floor_bar('decisions per second and core, millions', decisions_per_second(lone, hundred, count), 10e6, 1e6),
        bar('knapsack of 1,000 parts, p99', solved_ms, 1, ' ms'),
        bar('its largest gap', gap_pct, 1, ' %'),
        bar('planner replay over an up-to-date lake, %s calls' % ('{:,}'.format(count) if count else 'unknown'),
            planner if count else None, round(2 * count / 40_000, 2) if count else 2, ' s'),
        bar('peak memory of a replay', most(*(p.median(2) for p in replayed[:4])), None, ' MB'),
        bar('`mine edges`, lake up to date', mined[0].median(0), .5, ' s'),
        bar('`mine tools`, lake up to date', mined[2].median(0), .5, ' s'),
        bar('`replay --policy all`, cold ÷ ccusage', ratio(all_cold, ccusage_again), 5),
        bar('the same, lake up to date, per 600 MB of logs', all_warm and all_warm * .6e9 / bytes_of(os.path.join(DIR, 'many')), 1, ' s'),
        bar('peak memory of all policies', most(*(p.median(2) for p in asked[:2])), None, ' MB'),
        floor_bar('events per second of `tune analyze` ÷ published `tune analyze`', ratio(published, analyze), 3, 1),
        floor_bar('events per second of `mine fingerprints` ÷ published `tune analyze`', ratio(published, fingerprints), 3, 1),
        bar('peak memory of `tune analyze`', analyzed[0].median(2), 300, ' MB'),
        bar('`devboy --help`', help_text.median(0) and help_text.median(0) * 1000, 20, ' ms'),
    ]
    return '\n'.join(lines)


def write(path, table, marks):
    """Put the table between its marks; everything else in the file stays."""
    text, (begin, end) = INTRO, marks
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            text = f.read()
    block = '%s\n\n%s\n\n%s' % (begin, table, end)
    if begin in text and end in text:
        text = text[:text.index(begin)] + block + text[text.index(end) + len(end):]
    else:
        text = text.rstrip('\n') + '\n\n' + block + '\n'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def main():
    p = argparse.ArgumentParser(prog='scripts/bench')
    p.add_argument('page', help=argparse.SUPPRESS)
    p.add_argument('--write', action='store_true', help='put the table into docs/benchmarks.md')
    p.add_argument('--logs', metavar='DIR', help='measure on these logs')
    a = p.parse_args()
    table = measure_logs(os.path.join(DIR, 'real')) if a.logs else measure()
    print(table)
    if a.write:
        write(a.page, table, REAL if a.logs else GENERATED)


if __name__ == '__main__':
    main()
