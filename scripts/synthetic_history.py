#!/usr/bin/env python3
"""Write synthetic Claude Code session logs: the layout, line types and proportions of real ones, none of their text.

usage: synthetic_history.py OUT_DIR [--layout many|single|small] [--bytes 1GB] [--seed 7]
                            [--big-line 100MB] [--days 30] [--end 2026-11-20]

  many    about 1,000 files over 30 projects, OUT_DIR/projects/<slug>/<uuid>.jsonl and subagents
  single  one session file of the whole size; --big-line adds one line of just under that many bytes
  small   a few short sessions with every layout and every kind of damage, for tests (--bytes is ignored)

Python 3 standard library only. The same arguments give the same bytes. Every word comes from WORDS below.

What a miner should find is known beforehand: FOLLOW is the probability of the next tool given the present one
(lag 1, per file), LINK the probability that the next call takes its argument out of the present result, DUPLICATE
the probability that a call of a tool repeats an earlier one with the same body. (LINK is a little lower in the logs,
because of repeats, parallel calls and failures; in subagents Agent and AskUserQuestion become Bash.)
"""
import argparse
import base64
import calendar
import collections
import datetime
import gzip
import itertools
import json
import math
import os
import random
import re
import shutil
from bisect import bisect_right
from json.encoder import encode_basestring

GET_ISSUES, GET_ISSUE = 'mcp__gitlab__get_issues', 'mcp__gitlab__get_issue'
GITHUB_ISSUES = 'mcp__github__get_issues'
LINEAR_LIST, LINEAR_GET = 'mcp__linear-server__list_issues', 'mcp__linear-server__get_issue'
BROWSE = 'mcp__plugin_playwright_playwright__browser_navigate'

# P(next | this). "Todo" is TodoWrite before 2.1.17, then TaskCreate and TaskUpdate; "Agent" is Task before 2.1.81.
FOLLOW = {
    'Bash': {'Bash': .63, 'Read': .13, 'Edit': .07, 'Grep': .055, 'Todo': .04, 'Write': .02, 'Glob': .015,
             GET_ISSUES: .003, GITHUB_ISSUES: .003, LINEAR_LIST: .004, 'WebSearch': .004, 'Skill': .006,
             'AskUserQuestion': .006, 'ToolSearch': .004, 'Agent': .01},
    'Read': {'Read': .36, 'Edit': .30, 'Bash': .13, 'Grep': .12, 'Todo': .03, 'Glob': .02, 'Write': .02, 'Agent': .02},
    'Edit': {'Edit': .42, 'Bash': .28, 'Read': .18, 'Todo': .08, 'Grep': .04},
    'Grep': {'Read': .40, 'Grep': .34, 'Bash': .12, 'Edit': .09, 'Glob': .03, 'Todo': .02},
    'Glob': {'Read': .45, 'Glob': .33, 'Bash': .12, 'Grep': .10},
    'Write': {'Bash': .35, 'Write': .27, 'Edit': .20, 'Todo': .10, 'Read': .08},
    'Todo': {'Todo': .34, 'Bash': .24, 'Read': .20, 'Edit': .12, 'Write': .05, 'Agent': .05},
    'Agent': {'Agent': .38, 'Bash': .26, 'Read': .24, 'Todo': .12},
    'WebSearch': {'WebFetch': .55, 'WebSearch': .20, 'Bash': .25},
    'WebFetch': {'WebFetch': .30, 'Read': .30, 'Bash': .40},
    'Skill': {'Bash': .60, 'Read': .40},
    'AskUserQuestion': {'Bash': .50, 'Read': .30, 'Todo': .20},
    'ToolSearch': {BROWSE: .60, 'Bash': .40},
    GET_ISSUES: {GET_ISSUE: .55, GET_ISSUES: .15, 'Grep': .30},
    GET_ISSUE: {GET_ISSUE: .30, 'Grep': .40, 'Read': .30},
    GITHUB_ISSUES: {GITHUB_ISSUES: .30, 'Bash': .40, 'Grep': .30},
    LINEAR_LIST: {LINEAR_GET: .50, LINEAR_LIST: .20, 'Bash': .30},
    LINEAR_GET: {LINEAR_GET: .30, 'Bash': .40, 'Grep': .30},
    BROWSE: {BROWSE: .50, 'Bash': .50},
}
# the small layout goes round in this circle instead, from session to session
ROUND = ('Grep', 'Read', 'Edit', 'Bash', GET_ISSUES, GET_ISSUE, 'Glob', 'Read', 'Edit', 'Bash', GET_ISSUES, 'Grep', 'Read', 'Bash',
         GET_ISSUES, 'Glob', 'Read', 'Edit', GITHUB_ISSUES, 'Grep', 'Glob', GET_ISSUES, 'Glob')
LINK = {
    ('Grep', 'Read'): .80, ('Glob', 'Read'): .80,          # file_path is the first path of the result
    ('Read', 'Edit'): .90, ('Edit', 'Read'): .50,          # the same file
    ('Edit', 'Edit'): .70, ('Edit', 'Bash'): .80,          # the same file; the project's test command
    ('WebSearch', 'WebFetch'): .80,                        # the first url
    (GET_ISSUES, GET_ISSUE): .80, (LINEAR_LIST, LINEAR_GET): .80,   # the first iid / identifier
}
DUPLICATE = {'Read': .03, 'Bash': .02, 'Grep': .01, GET_ISSUES: .75, LINEAR_LIST: .15}
PARALLEL = {'Read': .45, 'Grep': .45, 'Glob': .45, 'Bash': .12, 'Edit': .05, 'Todo': .3, 'Agent': .5, GET_ISSUE: .4}  # same tool again in the message
P_ERROR, P_REJECTED, P_UNANSWERED, P_IMAGE = .045, .006, .002, .004

# characters: median, 90th percentile, most (a log-normal cut at the last figure)
SIZES = {
    'Read': (2600, 19000, 90000), 'Bash': (240, 2240, 30000), 'Grep': (600, 5360, 20000), 'Glob': (70, 1800, 8000),
    'original': (7500, 34000, 160000), 'Write': (3800, 12000, 40000), 'edit': (240, 1300, 6000),
    'thinking': (330, 2800, 12000), 'signature': (380, 900, 3000), 'text': (110, 930, 6000), 'prompt': (160, 900, 6000),
    'Agent': (1500, 8000, 20000), 'WebFetch': (1100, 4600, 50000), 'WebSearch': (3200, 4100, 5000),
    'agent_file': (60000, 400000, 2000000), 'issues': (2500, 9000, 40000),
}
MODELS = (('claude-opus-4-6', 38), ('claude-opus-4-5-20251101', 30), ('claude-sonnet-4-5-20250929', 12),
          ('claude-sonnet-5', 7), ('claude-opus-5', 6), ('claude-haiku-4-5-20251001', 4), ('glm-5', 3))
VERSIONS = (('1.0.51', 4), ('2.0.42', 6), ('2.1.17', 12), ('2.1.29', 31), ('2.1.76', 11), ('2.1.119', 15), ('2.1.217', 21))
WORDS = """amber anchor apple apron arbor atlas badge bamboo barrel basil beacon bean bell birch blanket bottle branch brick
bridge brook bucket button cabin candle canvas cargo cedar chalk cherry cinder circle clay clover cobalt copper coral cotton
cradle crystal curtain daisy delta desk dune ember engine fabric feather fence fern flame flute forest fountain garden garnet
ginger glacier globe granite grove hammer harbor hazel hedge helmet hinge honey island ivory jacket jasmine kettle ladder
lantern ledger lemon lever lilac linen magnet mango maple marble meadow mirror mortar needle nickel oak oasis olive onyx
orchard oyster paddle panel paper parcel pebble pepper pewter pillar pine plum pocket pond poplar puzzle quartz quill raft
raven ribbon ripple river rocket saddle saffron sail sandal satin shelf shore silver slate spindle spruce stable starling
stone summit table tassel thimble thistle timber topaz tower tulip tunnel valley velvet violet wagon walnut willow window
wool yarrow zephyr zinc""".split()
COMMANDS = (('cargo test -p %s', 'test', 26), ('git diff --stat %s', 'diff', 12), ('ls -la src/%s', 'listing', 14),
            ('tail -n 200 logs/%s.log', 'log', 14), ('cat config/%s.json', 'json', 8), ('sed -n 1,80p src/%s.rs', 'code', 12),
            ('cargo build --bin %s', 'build', 14))
BIG, SMALL_CAP = 1 << 22, 90


def esc(text):
    """A JSON string without its quotes. All pools hold text in this form, so that lines are only joined."""
    return encode_basestring(text)[1:-1].encode()


def js(value):
    return json.dumps(value, ensure_ascii=False, separators=(',', ':')).encode()


def choice(rng, pairs):
    return rng.choices([p[0] for p in pairs], [p[-1] for p in pairs])[0]


DAYS = {}


def iso(ms):
    day, rest = divmod(ms, 86400000)
    if day not in DAYS:
        DAYS[day] = (datetime.date(1970, 1, 1) + datetime.timedelta(day)).isoformat()
    return b'%bT%02d:%02d:%02d.%03dZ' % (DAYS[day].encode(), rest // 3600000, rest // 60000 % 60, rest // 1000 % 60, rest % 1000)


def uuid(rng):
    h = b'%032x' % rng.getrandbits(128)
    return b'%b-%b-4%b-a%b-%b' % (h[:8], h[8:12], h[13:16], h[17:20], h[20:])


class Stream:
    """Lines of text, escaped and joined once; a window is a slice at line ends."""

    def __init__(self, lines, prefix=None):
        parts = [esc(line) + b'\\n' for line in lines]
        if prefix:
            parts = [prefix(i + 1) + part for i, part in enumerate(parts)]
        self.frag = b''.join(parts)
        self.off = [0, *itertools.accumulate(map(len, parts))]
        self.lines = len(parts)

    def slice(self, first, last):
        return self.frag[self.off[first]:self.off[last] - 2] if last > first else b''

    def window(self, rng, size):
        size = min(size, len(self.frag) - 1)
        first = bisect_right(self.off, rng.randrange(len(self.frag) - size)) - 1
        return self.slice(first, max(first + 1, bisect_right(self.off, self.off[first] + size) - 1))


class Source:
    """One source file: plain text and both numbered forms."""

    def __init__(self, lines):
        self.plain = Stream(lines)
        self.arrow = Stream(lines, lambda n: '{:>6}→'.format(n).encode())
        self.tab = Stream(lines, lambda n: b'%d\\t' % n)
        self.lines = len(lines)


class Pools:
    """All text, built once from WORDS."""

    def __init__(self, seed, scale):
        rng = random.Random('pools %d' % seed)
        w = lambda: rng.choice(WORDS)
        n = lambda: rng.randrange(2, 5000)
        camel = lambda: w().title() + w().title()
        sentence = lambda: ' '.join([w().title()] + [w() for _ in range(rng.randrange(4, 16))]) + rng.choice('.....?:')
        hexa = lambda k: '%0*x' % (k, rng.getrandbits(4 * k))
        issue = lambda: {'iid': n(), 'title': sentence(), 'state': rng.choice(['opened', 'closed']),
                         'labels': [w(), w()], 'author': {'id': n(), 'username': w()}, 'weight': rng.choice([None, 1, 2, 3, 5]),
                         'web_url': 'https://gitlab.example.com/%s/%s/-/issues/%d' % (w(), w(), n()),
                         'created_at': '2026-10-%02dT%02d:15:00Z' % (rng.randrange(1, 29), rng.randrange(24))}
        code = (lambda: 'fn %s_%s(%s: &%s) -> Result<%s, Error> {' % (w(), w(), w(), camel(), camel()),
                lambda: '    let %s = %s.%s(%d)?;' % (w(), w(), w(), n()),
                lambda: '    let %s = %s::new(&%s, "%s %s");' % (w(), camel(), w(), w(), w()),
                lambda: '    if %s.%s() > %d { return Err(Error::%s); }' % (w(), w(), n(), camel()),
                lambda: '        %s.push(%s { %s: %d, %s: "%s".into() });' % (w(), camel(), w(), n(), w(), w()),
                lambda: '    // ' + sentence(), lambda: '/// ' + sentence(), lambda: '}', lambda: '',
                lambda: '    for (%s, %s) in %s.iter().enumerate() {' % (w(), w(), w()),
                lambda: 'use crate::%s::{%s, %s};' % (w(), camel(), camel()), lambda: '    }',
                lambda: '\tassert_eq!(%s, "naïve %s → %s");' % (w(), w(), w()))
        kinds = {
            'code': code,
            'test': [lambda: 'test %s::%s::%s_%s ... %s' % (w(), w(), w(), w(), rng.choice(['ok'] * 9 + ['FAILED']))],
            'build': [lambda: '   Compiling %s-%s v0.%d.%d (/srv/%s/%s)' % (w(), w(), n() % 30, n() % 9, w(), w()),
                      lambda: 'warning: unused variable `%s` at src/%s.rs:%d:%d' % (w(), w(), n(), n() % 90)],
            'diff': [lambda: rng.choice('+- ') + rng.choice(code)(), lambda: '@@ -%d,%d +%d,%d @@' % (n(), n() % 9, n(), n() % 9),
                     lambda: ' src/%s/%s.rs | %d ++++---' % (w(), w(), n() % 200)],
            'listing': [lambda: '-rw-r--r-- 1 user user %6d Nov %2d %02d:%02d %s_%s.rs' % (n() * 7, n() % 28 + 1, n() % 24, n() % 60, w(), w())],
            'log': [lambda: '2026-11-%02dT%02d:%02d:%02dZ %s %s: %s id=%s' % (n() % 19 + 1, n() % 24, n() % 60, n() % 60, rng.choice(['INFO', 'WARN', 'ERROR']), w(), sentence(), hexa(8)),
                    lambda: 'GET https://api.example.com/%s/%s?page=%d 200 %s' % (w(), w(), n(), hexa(40))],
            'json': [lambda: json.dumps({w(): n(), w(): sentence(), w(): [n(), n()], w(): {w(): None}})],
            'prose': [lambda: ' '.join(sentence() for _ in range(rng.randrange(1, 4))), sentence,
                      lambda: '- ' + sentence(), lambda: '%d. `%s` %s' % (n() % 9, w(), sentence())],
        }
        amount = {k: (max(300, int(scale * (40000 if k == 'code' else 12000)))) for k in kinds}
        text = {k: [rng.choice(makers)() for _ in range(amount[k])] for k, makers in kinds.items()}
        self.stream = {k: Stream(v) for k, v in text.items()}
        self.sources = []
        for _ in range(max(30, int(300 * scale))):
            length = min(3000, 20 + int(rng.lognormvariate(math.log(800), 1.0)))
            first = rng.randrange(max(1, amount['code'] - length))
            self.sources.append(Source(text['code'][first:first + length]))
        self.signature = base64.b64encode(rng.randbytes(200000))
        self.issues = [issue() for _ in range(600)]


class Project:
    def __init__(self, rng, pools, name, windows):
        self.name, self.cwd = name, ('D:\\work\\' if windows else '/home/user/') + name
        self.slug = re.sub('[^a-zA-Z0-9]', '-', self.cwd)
        sep, self.files = ('\\' if windows else '/'), []
        for _ in range(160):
            rel = sep.join(['src', rng.choice(WORDS), rng.choice(WORDS) + '_' + rng.choice(WORDS) + '.rs'])
            self.files.append((esc(self.cwd + sep + rel), esc(rel), rng.choice(pools.sources)))
        self.crates = [name + '-' + rng.choice(WORDS) for _ in range(4)]


Call = collections.namedtuple('Call', 'tool name id input body extra listed ms agent')


class Session:
    """One log file being written. An agent is a session with a parent."""

    def __init__(self, world, project, path, start, version=None, model=None, parent=None, agent=None, script=None, inline=False):
        self.world, self.pools, self.project, self.path = world, world.pools, project, path
        self.rng = rng = random.Random('%d %s' % (world.seed, os.path.basename(path) + (agent or '')))
        self.script, self.agent, self.inline, self.above = script, agent, inline, parent
        self.version = version or choice(rng, VERSIONS)
        self.v = tuple(map(int, self.version.split('.')))
        self.model = model or choice(rng, MODELS)
        self.id = parent.id if parent else os.path.basename(path)[:36].encode()
        self.slugname = parent.slugname if parent else '-'.join(rng.choice(WORDS) for _ in range(3))
        self.branch = parent.branch if parent else rng.choice(['main', 'main', 'feature/' + rng.choice(WORDS), '', 'HEAD'])
        self.entry = rng.choice(['cli', 'cli', 'claude-desktop'])
        self.hooks = script is None and rng.random() < .7
        self.focus = rng.sample(project.files, 25)
        self.out, self.pending, self.size, self.head, self.tap = [], 0, 0, [], None
        self.last = b'null'         # uuid of the line that the next one hangs on
        self.t, self.ctx, self.cached, self.limit = start, 18000, 0, rng.randrange(155000, 172000)
        self.calls, self.next, self.tool, self.was, self.link, self.tracked, self.done = 0, None, 'Todo', None, {}, [], {}
        self.most = float('inf')     # calls
        self.set_cwd(project.cwd)

    # ---- lines -------------------------------------------------------------------------------------------------

    def set_cwd(self, cwd):
        env = [('userType', 'external')]
        if self.v >= (2, 1, 78):
            env.append(('entrypoint', self.entry))
        env += [('cwd', cwd), ('sessionId', self.id.decode()), ('version', self.version), ('gitBranch', self.branch)]
        if self.agent and not self.inline:
            env.append(('agentId', self.agent))
        if self.v >= (2, 0, 55):
            env.append(('slug', self.slugname))
        env = js(dict(env))[1:-1].replace(b'%', b'%%')
        head = b'{"parentUuid":%%b,"isSidechain":%b,' % (b'true' if self.agent else b'false')
        if self.v >= (2, 1, 78):
            self.form = head + b'%b,"uuid":"%b","timestamp":"%b"%b,' + env + b'}\n'
        else:
            self.form = head + env + b',%b,"uuid":"%b","timestamp":"%b"%b}\n'

    def raw(self, line):
        self.out.append(line)
        self.size += len(line)
        self.pending += len(line)
        if len(self.head) < 80:
            self.head.append(line)
        if self.pending > BIG and not self.inline:
            self.flush()

    def emit(self, body, tail=b'', parent=None, uid=None, move=True):
        uid = uid or uuid(self.rng)
        parent = parent or self.last
        self.raw(self.form % (parent if parent == b'null' else b'"%b"' % parent, body, uid, iso(self.t), tail))
        if move:
            self.last = uid
        return uid

    def small_line(self, kind, rest):
        self.raw(b'{"type":"%b",%b}\n' % (kind, rest))

    def flush(self):
        if self.out:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path, 'ab') as f:
                f.write(b''.join(self.out))
        self.out, self.pending = [], 0

    def wait(self, median, spread=.8):
        self.t += 1 + int(median * self.rng.lognormvariate(0, spread))

    def chars(self, kind):
        p50, p90, most = SIZES[kind]
        size = min(most, int(self.rng.lognormvariate(math.log(p50), math.log(p90 / p50) / 1.2816)))
        return min(size // 2, SMALL_CAP if kind != 'signature' else 40) if self.script is not None else size

    def prose(self, kind):
        return self.pools.stream['prose'].window(self.rng, self.chars(kind))

    def chance(self, p):
        """Random events of the large layouts; in the small one events are scripted."""
        return self.script is None and self.rng.random() < p

    # ---- tools: each returns input, body, toolUseResult -----------------------------------------------------------

    def pick_file(self, tool):
        if self.rng.random() < LINK.get((self.was, tool), 0) and 'file' in self.link:
            return self.link['file']
        return self.rng.choice(self.focus)

    def read(self):
        rng, (path, _, src) = self.rng, self.pick_file('Read')
        num, first = (src.tab if self.v >= (2, 1, 100) else src.arrow), 0
        self.link = {'file': (path, _, src)}
        if self.chance(P_IMAGE):
            data = base64.b64encode(rng.randbytes(min(700000, int(rng.lognormvariate(11.8, .8)))))
            return (b'{"file_path":"%b.png"}' % path, b'[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%b"}}]' % data,
                    b'{"type":"image","file":{"base64":"%b","type":"image/png","originalSize":%d}}' % (data, len(data) * 3 // 4))
        arg = b''
        if rng.random() < .25:
            first = rng.randrange(src.lines)
        size = self.chars('Read')
        last = min(src.lines, max(first + 1, bisect_right(num.off, num.off[first] + size) - 1))
        body, plain = num.slice(first, last), src.plain.slice(first, last)
        if first:
            arg = b',"offset":%d,"limit":%d' % (first + 1, last - first)
        else:   # the first line differs at every read, as in a file that is being worked on
            mark = b'// revision %08x %b' % (rng.getrandbits(32), rng.choice(WORDS).encode())
            mark_at = num.off[1] - 2
            body = (b'1\\t' if num is src.tab else '     1→'.encode()) + mark + num.frag[mark_at:mark_at + 2 + max(0, len(body) - mark_at - 2)] * (last > 1)
            plain = mark + src.plain.frag[src.plain.off[1] - 2:src.plain.off[last] - 2] * (last > 1)
        extra = b'{"type":"text","file":{"filePath":"%b","content":"%b","numLines":%d,"startLine":%d,"totalLines":%d}}' % (
            path, plain, last - first, first + 1, src.lines)
        return b'{"file_path":"%b"%b}' % (path, arg), body, extra

    def edit(self):
        rng, (path, rel, src) = self.rng, self.pick_file('Edit')
        self.link = {'file': (path, rel, src)}
        if (path, rel) not in self.tracked:
            self.tracked = self.tracked[-5 if self.script is None else -1:] + [(path, rel)]
        at = rng.randrange(src.lines)
        end = max(at + 1, min(src.lines, bisect_right(src.plain.off, src.plain.off[at] + self.chars('edit')) - 1))
        old, new = src.plain.slice(at, end), self.pools.stream['code'].window(rng, self.chars('edit'))
        around = 4 if self.script is None else 1
        up, down = max(0, at - around), min(src.lines, end + around)
        lines = [b'" %b"' % src.plain.slice(i, i + 1) for i in range(up, at)]
        lines += [b'"-%b"' % x for x in old.split(b'\\n')] + [b'"+%b"' % x for x in new.split(b'\\n')]
        lines += [b'" %b"' % src.plain.slice(i, i + 1) for i in range(end, down)]
        k = new.count(b'\\n') + 1
        patch = b'[{"oldStart":%d,"oldLines":%d,"newStart":%d,"newLines":%d,"lines":[%b]}]' % (
            up + 1, down - up, up + 1, down - up - (end - at) + k, b','.join(lines))
        whole = self.chars('original')
        original = src.plain.slice(0, max(1, bisect_right(src.plain.off, whole) - 1))
        while len(original) < whole * .7 and self.script is None:   # larger files than the pool has
            original += b'\\n' + self.pools.stream['code'].window(rng, whole - len(original))
        if self.v >= (2, 1, 34):
            body = b'Changed %b: one place, %d lines now, the rest of the file is as it was. Read it again only if another program wrote to it.' % (path, k)
        else:
            body = b'Changed %b. The lines around the change are now:\\n' % path + src.arrow.slice(up, down)
        extra = b'{"filePath":"%b","oldString":"%b","newString":"%b","originalFile":"%b","structuredPatch":%b,"userModified":false,"replaceAll":false}' % (
            path, old, new, original, patch)
        return b'{"replace_all":false,"file_path":"%b","old_string":"%b","new_string":"%b"}' % (path, old, new), body, extra

    def write(self):
        path, rel, _ = self.rng.choice(self.focus)
        self.link = {'file': (path, rel, _)}
        text = self.pools.stream['code'].window(self.rng, self.chars('Write'))
        extra = b'{"type":"create","filePath":"%b","content":"%b","structuredPatch":[],"originalFile":null}' % (path, text)
        return b'{"file_path":"%b","content":"%b"}' % (path, text), b'Created %b.' % path, extra

    def bash(self):
        rng = self.rng
        if rng.random() < LINK.get((self.was, 'Bash'), 0):
            command, kind = 'cargo test -p ' + self.project.crates[0], 'test'
        else:
            command, kind, _ = rng.choices(COMMANDS, [c[2] for c in COMMANDS])[0]
            command = command % rng.choice(WORDS)
        size = self.chars('Bash')
        if size < 45:
            body = b'' if size < 6 else esc(' '.join(rng.choice(WORDS) for _ in range(size // 8 + 1)))
        else:
            body = self.pools.stream[kind].window(rng, size)
        say = b'%b %b' % (rng.choice(WORDS).title().encode(), rng.choice(WORDS).encode())
        extra = b'{"stdout":"%b","stderr":"","interrupted":false,"isImage":false%b}' % (
            body, b',"noOutputExpected":false' if self.v >= (2, 1, 34) else b'')
        return b'{"command":"%b","description":"%b"}' % (esc(command), say), body, extra

    def grep(self):
        rng, size = self.rng, self.chars('Grep')
        hits, n, files = [], 0, []
        content = size > 300 and rng.random() < .7
        while n < size and len(files) < 60 or not files:
            path, rel, src = f = rng.choice(self.project.files)
            files.append(f)
            for _ in range(rng.randrange(1, 7) if content else 1):
                at = rng.randrange(src.lines)
                hits.append(b'%b:%d:%b' % (rel, at + 1, src.plain.slice(at, at + 1)) if content else path)
                n += len(hits[-1]) + 2
        if len(files) == 60 and content:
            hits += [h for h in hits[:max(0, (size - n) // 80)]]
        self.link = {'file': files[0]}
        body = b'\\n'.join(hits) if content else b'Found %d files\\n' % len(files) + b'\\n'.join(hits)
        names = b','.join(b'"%b"' % f[0] for f in files) if not content else b''
        mode = b'content' if content else b'files_with_matches'
        extra = b'{"mode":"%b","numFiles":%d,"filenames":[%b]%b}' % (
            mode, 0 if content else len(files), names, b',"content":"%b","numLines":%d' % (body, len(hits)) if content else b'')
        return b'{"pattern":"%b_%b","path":"src","output_mode":"%b"}' % (
            rng.choice(WORDS).encode(), rng.choice(WORDS).encode(), mode), body, extra

    def glob(self):
        size = self.chars('Glob')
        files = self.rng.sample(self.project.files, max(1, min(150, size // 60)))
        self.link = {'file': files[0]}
        extra = b'{"filenames":[%b],"durationMs":%d,"numFiles":%d,"truncated":false}' % (
            b','.join(b'"%b"' % f[0] for f in files), self.rng.randrange(3, 90), len(files))
        return b'{"pattern":"**/%b*.rs"}' % self.rng.choice(WORDS).encode(), b'\\n'.join(f[0] for f in files), extra

    def todo(self):
        rng, title = self.rng, self.pools.stream['prose'].window(self.rng, 20)[:40].rstrip(b'\\')
        if self.v < (2, 1, 17):
            todos = b'[%b]' % b','.join(b'{"content":"%b %d","status":"%b","activeForm":"%b"}' % (title, i, s, title)
                                        for i, s in enumerate([b'completed', b'in_progress', b'pending', b'pending']))
            return b'{"todos":%b}' % todos, b'The list was stored: one done, one in work, two waiting.', b'{"oldTodos":[],"newTodos":%b}' % todos
        number = b'%d' % rng.randrange(1, 30)
        if rng.random() < .22:
            return (b'{"subject":"%b","description":"%b","activeForm":"%b"}' % (title, self.prose('text'), title),
                    b'Task #%b stored: %b' % (number, title), b'{"task":{"id":"%b","subject":"%b"}}' % (number, title))
        return (b'{"taskId":"%b","status":"completed"}' % number, b'Task #%b is now done' % number,
                b'{"success":true,"taskId":"%b","updatedFields":["status"],"statusChange":{"from":"in_progress","to":"completed"}}' % number)

    def web_search(self):
        url = b'https://docs.example.com/%b/%d' % (self.rng.choice(WORDS).encode(), self.rng.randrange(9999))
        self.link = {'url': url}
        body = b'Links: [{\\"title\\":\\"%b\\",\\"url\\":\\"%b\\"}]\\n\\n' % (self.rng.choice(WORDS).encode(), url) + self.prose('WebSearch')
        query = b'%b %b' % (self.rng.choice(WORDS).encode(), self.rng.choice(WORDS).encode())
        return b'{"query":"%b"}' % query, body, b'{"query":"%b","results":["%b"],"durationSeconds":%d}' % (query, body, self.rng.randrange(1, 20))

    def web_fetch(self):
        linked = self.rng.random() < LINK.get((self.was, 'WebFetch'), 0)
        url = self.link.get('url') if linked else None
        url = url or b'https://docs.example.com/%b' % self.rng.choice(WORDS).encode()
        body = self.prose('WebFetch')
        extra = b'{"bytes":%d,"code":200,"codeText":"OK","result":"%b","durationMs":%d,"url":"%b"}' % (len(body) * 3, body, self.rng.randrange(300, 9000), url)
        return b'{"url":"%b","prompt":"%b"}' % (url, self.rng.choice(WORDS).encode()), body, extra

    def issue_tool(self, name):
        rng, linked = self.rng, self.rng.random() < LINK.get((self.was, name), 0)
        n = 1 if name in (GET_ISSUE, LINEAR_GET) else max(2, self.chars('issues') // 330) if self.script is None else 2
        rows = [dict(r) for r in rng.sample(self.pools.issues, min(n, 120))]
        for row in rows if self.script is not None else ():
            del row['labels'], row['created_at']
        rows[0]['iid'] = rng.randrange(100000)
        if name == GET_ISSUE:
            rows[0]['iid'] = self.link.get('iid', rows[0]['iid']) if linked else rows[0]['iid']
            one = dict(rows[0], description=rng.choice(WORDS) + ' at https://ci.example.com/jobs/%d commit %040x' % (rng.randrange(9999), rng.getrandbits(160)),
                       pipeline={'status': 'failed', 'log': ['ERROR ' + rng.choice(WORDS)] * 3, 'sha': '%040x' % rng.getrandbits(160)})
            return {'project_id': 42, 'issue_iid': one['iid']}, one
        if name == GITHUB_ISSUES:
            table = ['| # | title | state | author |', '| --- | --- | --- | --- |']
            table += ['| %d | %s | %s | %s |' % (r['iid'], r['title'], r['state'], r['author']['username']) for r in rows]
            return {'owner': 'example', 'repo': self.project.name, 'page': rng.randrange(1, 9)}, '%d issues\n\n' % len(rows) + '\n'.join(table)
        if name == GET_ISSUES:
            self.link = {'iid': rows[0]['iid']}
            return {'project_id': 42, 'state': 'opened', 'page': rng.randrange(1, 9)}, rows
        linear = [{'id': 'LAN-%d' % r['iid'], 'title': r['title'], 'status': r['state'], 'labels': r.get('labels', []), 'priority': {'value': r['weight'], 'name': 'Normal'}} for r in rows]
        if name == LINEAR_LIST:
            self.link = {'id': linear[0]['id']}
            return {'team': 'Lantern', 'limit': len(rows)}, {'issues': linear, 'hasNextPage': False}
        if linked:
            linear[0]['id'] = self.link.get('id', linear[0]['id'])
        return {'id': linear[0]['id']}, dict(linear[0], description=rows[0]['title'] * 3)

    def make(self, tool):
        """The next call: a repeat of an earlier one, or a new one."""
        rng, name, listed, agent = self.rng, tool, False, None
        tid = b'toolu_01%022x' % rng.getrandbits(88)
        done = self.done.setdefault(tool, collections.deque(maxlen=4))
        if done and rng.random() < DUPLICATE.get(tool, 0):
            old, self.link = rng.choice(done)
            self.was = tool
            return old._replace(id=tid)
        ms = {'Bash': 900, 'Agent': 500, 'AskUserQuestion': 30000, 'WebFetch': 3000, 'WebSearch': 5000}.get(tool, 45)
        if tool.startswith('mcp__'):
            ms, listed = 700, True
            if tool == BROWSE:
                given, value = {'url': 'https://app.example.com/' + rng.choice(WORDS)}, '- page: %s\n- title: %s' % (rng.choice(WORDS), rng.choice(WORDS))
            else:
                given, value = self.issue_tool(tool)
            text = value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))
            given, body = js(given), esc(text)
            extra = b'[{"type":"text","text":"%b"}]' % body
        elif tool == 'Agent':
            name = 'Agent' if self.v >= (2, 1, 81) else 'Task'
            kind, agent = rng.choice(['Explore', 'general-purpose', 'Plan']), 'a%016x' % rng.getrandbits(64)
            if self.v < (2, 1):
                agent = agent[1:9]
            given = b'{"description":"%b %b","prompt":"%b","subagent_type":"%b"}' % (
                rng.choice(WORDS).title().encode(), rng.choice(WORDS).encode(), self.prose('prompt'), kind.encode())
            body, extra = self.prose('Agent'), b''
        elif tool == 'Skill':
            given, body, extra = b'{"skill":"%b"}' % rng.choice(WORDS).encode(), b'Launching the skill', b'{"success":true}'
        elif tool == 'ToolSearch':
            given, body, extra = b'{"query":"select:%b"}' % BROWSE.encode(), b'', b'{"matches":["%b"],"query":"browser","total_deferred_tools":9}' % BROWSE.encode()
        elif tool == 'AskUserQuestion':
            q = self.prose('text')
            given, body = b'{"questions":[{"question":"%b","options":[{"label":"yes"},{"label":"no"}]}]}' % q, b'The answer is: yes. ' + q
            extra = b'{"answers":{"choice":"yes"}}'
        else:
            maker = {'Read': self.read, 'Edit': self.edit, 'Write': self.write, 'Bash': self.bash, 'Grep': self.grep, 'Glob': self.glob,
                     'Todo': self.todo, 'WebSearch': self.web_search, 'WebFetch': self.web_fetch}[tool]
            given, body, extra = maker()
            if tool == 'Todo':
                name = 'TodoWrite' if self.v < (2, 1, 17) else 'TaskCreate' if given.startswith(b'{"subject') else 'TaskUpdate'
        self.was = tool
        call = Call(tool, name, tid, given, body, extra, listed, ms, agent)
        if tool in DUPLICATE and len(body) >= 200:
            done.append((call, self.link))
        return call

    # ---- messages ------------------------------------------------------------------------------------------------

    def usage(self, fresh, output):
        new, split = max(0, self.ctx - self.cached), b''
        if self.v >= (1, 0, 98):
            hour = self.v >= (2, 1)
            split = b'"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},' % ((0, new) if hour else (new, 0))
        rest = b''
        if self.v >= (2, 1, 41):
            rest = b',"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"inference_geo":"","iterations":[],"speed":"standard"'
        return b'{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,%b"output_tokens":%d,"service_tier":"standard"%b}' % (
            fresh, new, self.cached, split, output, rest)

    def message(self, calls, final=False):
        """One API message: a line per block, the usage on each. The results of the calls follow or stand between."""
        rng, blocks = self.rng, []
        think, say = (.46, .48) if self.script is None else (.07, .07)
        if rng.random() < think:
            sign = self.chars('signature')
            at = rng.randrange(len(self.pools.signature) - sign)
            blocks.append(b'{"type":"thinking","thinking":"%b","signature":"%b"}' % (
                b'' if rng.random() < .09 else self.prose('thinking'), self.pools.signature[at:at + sign]))
        if final or rng.random() < say:
            blocks.append(b'{"type":"text","text":"%b"}' % self.prose('text'))
        caller = b',"caller":{"type":"direct"}' if self.v >= (2, 1, 17) else b''
        blocks += [b'{"type":"tool_use","id":"%b","name":"%b","input":%b%b}' % (c.id, c.name.encode(), c.input, caller) for c in calls]
        true = sum(map(len, blocks)) // 4 + 5
        fresh = rng.randrange(1, 12)
        first, output, stop = true, true, b'null'
        if self.v < (2, 1, 100):      # no stop_reason: the logged value is mostly a first-chunk one
            output = rng.randrange(1, 10) if rng.random() < .6 else true
            first = rng.randrange(1, min(output, 9) + 1) if rng.random() < .3 else output
            if self.v >= (2, 1, 50) and rng.random() < .5:
                output, stop = true, b'"end_turn"' if final else b'"tool_use"'
        else:
            stop = b'"end_turn"' if final else b'"tool_use"'
            if self.v < (2, 1, 200) and rng.random() < .4:
                first = rng.randrange(1, 10)
        glm = self.model.startswith('glm')
        mid = b'msg_01%022x' % rng.getrandbits(88)
        req = b'' if glm else b'"requestId":"req_011%021x",' % rng.getrandbits(84)
        head = b'"model":"%b","id":"%b","type":"message","role":"assistant"' % (self.model.encode(), mid)
        if self.v < (2, 0):
            head = b'"id":"%b","type":"message","role":"assistant","model":"%b"' % (mid, self.model.encode())
        more = b',"stop_details":null' if self.v >= (2, 1, 89) else b''
        early = len(calls) > 1 and rng.random() < .5      # results stand between the calls
        rows, waiting, failed = [], [], False
        for i, block in enumerate(blocks):
            tokens = output if i == len(blocks) - 1 else first
            text = b'{%b,"content":[%b],"stop_reason":%b,"stop_sequence":null%b,"usage":%b}' % (head, block, stop, more, self.usage(fresh, tokens))
            self.wait(1500 if i else 3500)
            uid = self.emit(b'"message":%b,%b"type":"assistant"' % (text, req))
            if self.tap is not None:
                self.tap.append((b'assistant', text, uid, iso(self.t), req))
            k = i - (len(blocks) - len(calls))
            if k >= 0:
                waiting.append((calls[k], uid))
                if early and rng.random() < .5:
                    failed |= self.answer(*waiting.pop(0), sibling=failed)
        if len(waiting) > 1 and rng.random() < .15:
            waiting.reverse()
        for call, uid in waiting:
            failed |= self.answer(call, uid, sibling=failed)
        self.cached, self.ctx = self.ctx, self.ctx + true

    def answer(self, call, uid, sibling=False):
        """Progress lines and the result of one call. True if it failed, so that its siblings may be cancelled."""
        rng, event = self.rng, None
        self.calls += 1
        if self.script is not None:
            event = self.script.pop(self.calls, None)
        elif sibling and rng.random() < .4:
            event = 'sibling'
        else:
            x = rng.random()
            if x < P_ERROR:
                event = 'error'
            elif x < P_ERROR + P_REJECTED:
                event = 'rejected'
            elif x < P_ERROR + P_REJECTED + P_UNANSWERED:
                event = 'unanswered'
        if event == 'unanswered':
            return False
        content, extra, status = b'"%b"' % call.body, call.extra, b''
        if call.body.startswith(b'[{"type":"image'):
            content = call.body
        elif call.listed:
            content = b'[{"type":"text","text":"%b"}]' % call.body
        elif call.tool == 'ToolSearch':
            content = b'[{"type":"tool_reference","tool_name":"%b"}]' % BROWSE.encode()
        elif call.tool == 'Agent' and event is None:
            extra = self.run_agent(call, uid)
            content = b'[{"type":"text","text":"%b"}]' % call.body
        self.progress(call, uid)
        self.wait(call.ms, 1.0)
        if event:
            text = {'error': b'Error: Exit code %d\\n%b' % (rng.randrange(1, 3), self.pools.stream['build'].window(rng, 160)) if call.tool == 'Bash'
                    else b'<tool_use_error>No such %b here: %b.</tool_use_error>' % (rng.choice(WORDS).encode(), rng.choice(WORDS).encode()),
                    'rejected': b"The user doesn't want to proceed with this tool use. Nothing was done.",
                    'sibling': b'<tool_use_error>Sibling tool call errored</tool_use_error>'}[event]
            content, extra, status = b'"%b"' % text, b'"Error: %b"' % text, b',"is_error":true'
        elif call.tool == 'Bash' and rng.random() < .8:
            status = b',"is_error":false'
        elif self.agent and not self.inline:
            extra = b''
        body = b'{"role":"user","content":[{"tool_use_id":"%b","type":"tool_result","content":%b%b}]}' % (call.id, content, status)
        tail = b',"toolUseResult":%b' % extra if extra else b''
        if self.v >= (2, 1, 1):
            tail += b',"sourceToolAssistantUUID":"%b"' % uid
        me = self.emit(b'"type":"user","message":%b' % body, tail, parent=uid)
        if self.tap is not None:
            self.tap.append((b'user', body, me, iso(self.t), b''))
        self.ctx += min(len(content), 100000) // 5
        if self.hooks and self.has_progress() and rng.random() < .9:
            self.hook(b'PostToolUse', call)
        if call.tool == 'Edit' and self.chance(.12):
            self.snapshot(uuid(rng), True)
        if call.tool == 'Skill' and self.chance(.9):
            self.emit(b'"type":"user","message":{"role":"user","content":[{"type":"text","text":"Base directory for this skill: /home/user/skills/%b\\n%b"}]},"isMeta":true' % (
                rng.choice(WORDS).encode(), self.prose('prompt')), b',"sourceToolUseID":"%b"' % call.id)
        return event in ('error', 'rejected')

    def has_progress(self):
        return (2, 1, 12) <= self.v <= (2, 1, 81)

    def hook(self, event, call):
        self.wait(30)
        data = b'{"type":"hook_progress","hookEvent":"%b","hookName":"%b:%b","command":"scripts/check.sh"}' % (event, event, call.name.encode())
        self.emit(b'"type":"progress","data":%b,"toolUseID":"%b","parentToolUseID":"%b"' % (data, call.id, call.id),
                  move=self.rng.random() < .05)

    def progress(self, call, uid):
        if not self.has_progress():
            return
        rng = self.rng
        if self.hooks and rng.random() < .3:
            self.hook(b'PreToolUse', call)
        if call.tool == 'Bash' and rng.random() < (.3 if self.script is None else .04):
            for i in range(min(60, 1 + int(rng.lognormvariate(1.9, 1)))):
                self.t += 1000
                out = self.pools.stream['log'].window(rng, rng.randrange(20, 300))
                self.emit(b'"type":"progress","data":{"type":"bash_progress","output":"%b","fullOutput":"%b","elapsedTimeSeconds":%d,"totalLines":%d},"toolUseID":"bash-progress-%d","parentToolUseID":"%b"' % (
                    out, out, i + 2, out.count(b'\\n') + 1, i, call.id), parent=uid, move=False)
        if call.listed:
            server, name = call.name[5:].split('__', 1)
            for status, ms in ((b'started', b''), (b'completed', b',"elapsedTimeMs":%d' % rng.randrange(80, 4000))):
                self.emit(b'"type":"progress","data":{"type":"mcp_progress","status":"%b","serverName":"%b","toolName":"%b"%b},"toolUseID":"%b","parentToolUseID":"%b"' % (
                    status, server.encode(), name.encode(), ms, call.id, call.id), parent=uid, move=False)

    def run_agent(self, call, uid):
        """Subagent work: in the file, beside it, under it, in progress lines, or nowhere."""
        rng, where = self.rng, None
        folder = os.path.dirname(self.path)
        if self.v < (2, 0):
            where = 'inline'
        elif self.v < (2, 1):
            where = 'beside'
        elif self.script is not None or rng.random() < .22:
            where = 'under'
        if self.script and self.script.pop('progress only', None):
            where = None
        if self.agent or not self.world.agent_files:
            where = None
        name = 'agent-%s.jsonl' % call.agent
        path = {'beside': os.path.join(folder, name), 'under': os.path.join(self.path[:-6], 'subagents', name)}.get(where, self.path)
        model = self.model if rng.random() < .6 else 'claude-haiku-4-5-20251001'
        sub = Session(self.world, self.project, path, self.t + 50, self.version, model, self, call.agent,
                      None if self.script is None else {}, where == 'inline')
        sub.tap = [] if self.has_progress() else None
        if where or sub.tap is not None:
            sub.human(json.loads(call.input)['prompt'])
            goal = sub.chars('agent_file') if where and self.script is None else 40000
            while sub.size < goal and sub.calls < (2 if self.script is not None else 4000):
                sub.step()
            sub.message([], final=True)
        self.t = max(self.t, sub.t)
        if where == 'inline':
            for line in sub.out:
                self.raw(line)
        elif where:
            sub.flush()
            self.world.total += sub.size
        prompt = re.search(rb'"prompt":"(.*?)","subagent', call.input).group(1)
        for kind, message, me, at, req in (sub.tap or ())[:60 if self.script is None else 4]:
            self.emit(b'"type":"progress","data":{"type":"agent_progress","message":{"type":"%b","message":%b,%b"uuid":"%b","timestamp":"%b"},"normalizedMessages":[],"prompt":"%b","agentId":"%b"},"toolUseID":"agent_msg_%08x","parentToolUseID":"%b"' % (
                kind, message, req, me, at, prompt, call.agent.encode(), rng.getrandbits(32), call.id), parent=uid, move=False)
        tokens = sub.ctx
        return b'{"status":"completed","prompt":"%b","agentId":"%b","content":[{"type":"text","text":"%b"}],"totalDurationMs":%d,"totalTokens":%d,"totalToolUseCount":%d,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":5}}' % (
            prompt, call.agent.encode(), call.body, max(1, sub.t - self.t + 4000), tokens + 8, sub.calls, tokens)

    # ---- turns ---------------------------------------------------------------------------------------------------

    def human(self, text, extra=b'', uid=None):
        if isinstance(text, str):
            text = esc(text)
        me = self.emit(b'"type":"user","message":{"role":"user","content":"%b"}' % text, extra, uid=uid)
        self.ctx += len(text) // 4
        if self.tap is not None:
            self.tap.append((b'user', b'{"role":"user","content":"%b"}' % text, me, iso(self.t), b''))
        return me

    def draw(self):
        table = self.world.follow[self.tool]
        self.tool = next(self.world.round) if self.script is not None else self.rng.choices(table[0], cum_weights=table[1])[0]
        if self.agent and self.tool in ('Agent', 'AskUserQuestion'):
            self.tool = 'Bash'
        if self.script and self.calls >= self.script.get('agent', 999):
            del self.script['agent']
            self.tool = 'Agent'
        return self.tool

    def step(self):
        tool = self.next or self.draw()
        batch = [self.make(tool)]
        self.next = self.draw()
        forced = self.script is not None and self.script.get(self.calls + 2) == 'sibling'
        while len(batch) < 6 and (self.next == tool and self.rng.random() < PARALLEL.get(tool, 0) or forced):
            batch.append(self.make(tool))
            if forced:
                break
            self.next = self.draw()
        self.message(batch)

    def snapshot(self, uid, update=False):
        files = b','.join(b'"%b":{"backupFileName":"%016x@v1","version":1,"backupTime":"%b"}' % (rel, self.rng.getrandbits(64), iso(self.t))
                          for _, rel in self.tracked)
        named = uuid(self.rng) if update else uid
        glue = self.chance(.0008) or self.script and self.script.pop('glue', False)
        if glue and self.out:
            self.out[-1] = self.out[-1][:-1]
        self.small_line(b'file-history-snapshot', b'"messageId":"%b","snapshot":{"messageId":"%b","trackedFileBackups":{%b},"timestamp":"%b"},"isSnapshotUpdate":%b' % (
            named, uid, files, iso(self.t), b'true' if update else b'false'))

    def system(self, kind, rest):
        self.emit(b'"type":"system","subtype":"%b",%b' % (kind, rest))

    def attach(self, **fields):
        self.emit(b'"attachment":%b,"type":"attachment"' % js(fields))

    def titles(self, prompt):
        sid = b'"sessionId":"%b"' % self.id
        if self.v >= (2, 1, 77):
            self.small_line(b'last-prompt', b'"lastPrompt":"%b","leafUuid":"%b",%b' % (prompt[:200].rsplit(b'\\', 1)[0], self.last, sid))
        if self.v >= (2, 1, 81) and self.chance(.5):
            self.small_line(b'custom-title', b'"customTitle":"%b",%b' % (self.slugname.encode(), sid))
        if self.v >= (2, 1, 112) and self.chance(.2):
            self.small_line(b'ai-title', b'"aiTitle":"%b",%b' % (self.slugname.encode(), sid))
        if self.v >= (2, 1, 157):
            self.small_line(b'mode', b'"mode":"normal",%b' % sid)
        if self.v >= (2, 1, 92) and self.chance(.4):
            self.small_line(b'permission-mode', b'"permissionMode":"acceptEdits",%b' % sid)
        if self.v >= (2, 1, 29) and self.chance(.05):
            self.small_line(b'pr-link', b'%b,"prNumber":%d,"prUrl":"https://git.example.com/pr/7","prRepository":"example/%b","timestamp":"%b"' % (
                sid, self.rng.randrange(99), self.project.name.encode(), iso(self.t)))

    def prompt(self):
        rng, text, uid = self.rng, self.prose('prompt'), uuid(self.rng)
        self.wait(90000, 1.2)
        if self.v >= (2, 0, 37) and self.chance(.25):
            stamp = b'"timestamp":"%b","sessionId":"%b"' % (iso(self.t), self.id)
            self.small_line(b'queue-operation', b'"operation":"enqueue",%b,"content":"%b"' % (stamp, text))
            self.small_line(b'queue-operation', b'"operation":"%b",%b' % (rng.choice([b'remove', b'dequeue']), stamp))
        if self.v >= (2, 0, 5):
            self.snapshot(uid)
        if self.chance(.12):
            name = rng.choice(WORDS).encode()
            self.emit(b'"type":"user","message":{"role":"user","content":"<local-command-caveat>Written by a local command.</local-command-caveat>"},"isMeta":true')
            self.emit(b'"type":"user","message":{"role":"user","content":"<command-name>/%b</command-name>\\n<command-message>%b</command-message>"}' % (name, name))
            self.emit(b'"type":"user","message":{"role":"user","content":"<local-command-stdout>%b</local-command-stdout>"}' % name)
        extra = b''
        if self.v >= (2, 1, 112):
            extra = b',"promptId":"%b","origin":{"kind":"human"}' % uuid(rng)
        elif (2, 1, 15) <= self.v:
            extra = b',"permissionMode":"default"'
        self.human(text, extra, uid)
        if self.v >= (2, 1, 92):
            for p, fields in ((.5, {'type': 'task_reminder', 'content': [], 'itemCount': 0}),
                              (.25, {'type': 'hook_success', 'hookName': 'UserPromptSubmit', 'command': 'scripts/check.sh', 'stdout': 'ok', 'stderr': '', 'exitCode': 0, 'durationMs': 41}),
                              (.2, {'type': 'nested_memory', 'path': '/home/user/notes.md', 'content': ' '.join(rng.choices(WORDS, k=rng.choice([60, 200, 900])))}),
                              (.15, {'type': 'queued_command', 'prompt': ' '.join(rng.choices(WORDS, k=12)), 'commandMode': rng.choice(['prompt', 'task-notification', 'task-notification'])}),
                              (.15, {'type': 'deferred_tools_delta', 'addedNames': [BROWSE, GET_ISSUES, GET_ISSUE], 'removedNames': []}),
                              (.1, {'type': 'skill_listing', 'content': ' '.join(rng.choices(WORDS, k=300)), 'skillCount': 9})):
                if self.chance(p * .8):
                    self.attach(**fields)
            if self.script and self.script.pop('queued', None):
                self.attach(type='queued_command', prompt=' '.join(rng.choices(WORDS, k=6)), commandMode='prompt')
        return text

    def end_turn(self, prompt, started):
        if self.v >= (2, 0, 64):
            if self.chance(.75):
                self.system(b'stop_hook_summary', b'"hookCount":1,"hookInfos":[{"command":"scripts/check.sh","durationMs":%d}],"hookErrors":[],"preventedContinuation":false,"stopReason":"","hasOutput":false,"level":"suggestion","toolUseID":"%b"' % (
                    self.rng.randrange(5, 90), uuid(self.rng)))
            if self.v >= (2, 1, 1) and (self.chance(.5) or self.script is not None and self.rng.random() < .3):
                self.system(b'turn_duration', b'"durationMs":%d,"isMeta":false' % (self.t - started))
        if self.chance(.01):
            self.system(b'api_error', b'"level":"error","error":{"status":529},"retryInMs":600,"retryAttempt":1,"maxRetries":10')
        if self.v >= (2, 1, 108) and self.chance(.04):
            self.system(b'away_summary', b'"content":"%b"' % self.prose('text'))
        if self.chance(.02):
            text = b'{"id":"%b","type":"message","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}],"stop_reason":"stop_sequence","stop_sequence":"","usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"service_tier":null}}' % uuid(self.rng)
            self.emit(b'"message":%b,"type":"assistant"' % text)
        self.titles(prompt)
        if self.chance(.004):
            self.set_cwd(self.project.cwd + ('\\' if '\\' in self.project.cwd else '/') + 'src')

    def compact(self, boundary=True):
        if boundary:
            auto = self.rng.random() < .87
            self.emit(b'"logicalParentUuid":"%b","type":"system","subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info","compactMetadata":{"trigger":"%b","preTokens":%d}' % (
                self.last, b'auto' if auto else b'manual', self.ctx), parent=b'null')
        self.wait(40000, .3)
        self.emit(b'"type":"user","message":{"role":"user","content":"This session is being continued from a previous conversation. In short: %b"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true' % self.prose('Agent'))
        self.ctx, self.cached, self.limit = 24000, 0, self.rng.randrange(155000, 172000)

    def microcompact(self, ids):
        self.system(b'microcompact_boundary', b'"content":"Older results cleared","isMeta":false,"level":"info","microcompactMetadata":{"trigger":"auto","preTokens":%d,"tokensSaved":%d,"compactedToolIds":%b,"clearedAttachmentUUIDs":[]}' % (
            self.ctx, self.ctx // 3, js(ids)))

    def opening(self):
        sid = b'"sessionId":"%b"' % self.id
        if self.v < (2, 1, 30) and self.rng.random() < .3:
            for _ in range(self.rng.randrange(1, 5)):
                self.small_line(b'summary', b'"summary":"%b %b","leafUuid":"%b"' % (
                    self.rng.choice(WORDS).title().encode(), self.rng.choice(WORDS).encode(), uuid(self.rng)))
        elif self.v >= (2, 1, 92) and self.rng.random() < .5:
            self.small_line(b'permission-mode', b'"permissionMode":"default",%b' % sid)
        elif self.has_progress() and self.hooks:
            self.emit(b'"type":"progress","data":{"type":"hook_progress","hookEvent":"SessionStart","hookName":"SessionStart:startup","command":"scripts/hello.sh"},"toolUseID":"%b","parentToolUseID":"%b"' % (
                uuid(self.rng), uuid(self.rng)))

    def turn(self, goal):
        started, text = self.t, self.prompt()
        for _ in range(1 + int(self.rng.expovariate(1 / 8.0))):
            if self.size >= goal or self.calls >= self.most:
                break
            self.step()
            if self.ctx > self.limit:
                self.compact()
            elif self.v == (2, 1, 17) and self.ctx > 110000 and self.chance(.004):
                self.microcompact(['toolu_01%022x' % self.rng.getrandbits(88)])
        self.message([], final=True)
        self.end_turn(text, started)

    def run(self, goal):
        self.opening()
        while self.size < goal:
            self.turn(goal)
        if self.out and self.chance(.3):
            self.out[-1] = self.out[-1][:-1]        # no newline at the end
            if self.chance(.05):
                self.out[-1] = self.out[-1][:-40]   # a torn one
        self.flush()

    def big_line(self, size):
        """One Bash result that makes its line just under `size` bytes long."""
        self.flush()
        self.script, self.hooks = {}, False         # nothing else may happen to this call
        self.message([self.make('Bash')._replace(body=b'', extra=b'')])
        self.script = None
        line, mark = self.out.pop(), b'"type":"tool_result","content":"'
        self.size, self.pending = self.size - len(line), self.pending - len(line)
        at = line.index(mark) + len(mark)
        room, parts = size - 64 - len(line), []
        while room > 300000:
            parts.append(self.pools.stream[self.rng.choice(['log', 'code', 'test', 'json'])].window(self.rng, 250000) + b'\\n')
            room -= len(parts[-1])
        parts.append(b'x' * room)
        self.raw(line[:at] + b''.join(parts) + line[at:])


class World:
    def __init__(self, out, seed, days, end, scale):
        self.out, self.seed, self.total, self.agent_files = out, seed, 0, True
        self.rng = random.Random('world %d' % seed)
        self.pools = Pools(seed, scale)
        self.follow = {k: (list(v), list(itertools.accumulate(v.values()))) for k, v in FOLLOW.items()}
        self.round = itertools.cycle(ROUND)
        self.end = calendar.timegm(datetime.date.fromisoformat(end).timetuple()) * 1000
        self.begin = self.end - days * 86400000

    def project(self, name, windows=False):
        return Project(random.Random('%d %s' % (self.seed, name)), self.pools, name, windows)

    def session(self, project, start, **more):
        path = os.path.join(self.out, 'projects', project.slug, uuid(self.rng).decode() + '.jsonl')
        return Session(self, project, path, start, **more)

    def many(self, total):
        rng = self.rng
        names = rng.sample(WORDS, 30)
        projects = [self.project(n, windows=i % 6 == 5) for i, n in enumerate(names)]
        count = max(6, round(total / 1_050_000))
        weights = [min(30.0, rng.lognormvariate(0, 1.7)) for _ in range(count)]
        plan = 0.0
        for i, weight in enumerate(weights):
            share = total * weight / sum(weights)
            plan += share
            goal = plan - self.total         # errors of earlier sessions even out
            if goal < share / 4 and i < count - 1:
                continue
            room = self.end - self.begin - int(share / 12000 * 25000)
            s = self.session(projects[min(29, int(rng.expovariate(.12)))], self.begin + rng.randrange(max(1, room)))
            s.run(goal)
            self.total += s.size
            if rng.random() < .03 and len(s.head) > 40:
                self.fork(s)

    def fork(self, s):
        """A resumed copy: the first lines again under a new session id, then new ones."""
        f = self.session(s.project, s.t + 3600000, version=s.version, model=s.model, script=s.script)
        for line in s.head[:60 if s.script is None else 6]:
            f.raw((line if line.endswith(b'\n') else line + b'\n').replace(s.id, f.id))
        f.turn(f.size + (20000 if s.script is None else 1))
        f.flush()
        self.total += f.size

    def single(self, total, big):
        self.agent_files = False
        s = self.session(self.project('lantern'), self.begin, version='2.1.76', model='claude-opus-4-6')
        while s.size < total - 1000:
            s.turn(total - big if big else total)
            if big and s.size > total / 2:
                s.big_line(big)
                big = 0
        s.flush()

    def small(self):
        lantern, orchard, harbor = self.project('lantern'), self.project('orchard'), self.project('harbor', windows=True)
        opus, hour, t = 'claude-opus-4-6', 3600000, self.begin

        def run(project, version, calls, script, model=opus, events=None):
            nonlocal t
            t += 7 * hour
            s = self.session(project, t, version=version, model=model, script=script)
            s.most = calls
            s.opening()
            while s.calls < calls:
                s.turn(s.size + 40000)
                for at in sorted(events or ()):
                    if s.calls >= at:
                        events.pop(at)(s)
            return s

        # old versions: inline sidechain lines; a summary without its boundary
        run(orchard, '1.0.51', 10, {'agent': 3}, 'claude-sonnet-4-20250514', {6: lambda s: s.compact(False)}).flush()
        # agent file beside the main one; a glued line
        run(orchard, '2.0.42', 27, {'agent': 5, 'glue': True}).flush()
        # a microcompaction; rejected, cancelled and unanswered calls
        ids = lambda s: s.microcompact([c.id.decode() for d in s.done.values() for c, _ in d][:3])
        run(harbor, '2.1.17', 29, {3: 'error', 6: 'rejected', 11: 'error', 12: 'sibling', 17: 'unanswered'}, events={20: ids}).flush()
        # subagents with a file, and one in progress lines only; a compaction
        run(lantern, '2.1.29', 34, {'agent': 5}, events={
            10: lambda s: s.script.update({'progress only': True, 'agent': s.calls}), 19: lambda s: s.compact()}).flush()
        # a torn last line, a sidecar that is no session log, and a forked copy
        s = run(lantern, '2.1.217', 28, {'agent': 9, 20: 'error', 'queued': True})
        self.fork(s)
        s.out.append(s.out[-1][:-40])
        s.flush()
        sidecar = os.path.join(s.path[:-6], 'subagents', 'workflows', 'wf_1', 'journal.jsonl')
        os.makedirs(os.path.dirname(sidecar))
        with open(sidecar, 'wb') as f:
            f.write(b''.join(b'{"type":"step","key":"%d","result":"%b"}\n' % (i, w.encode()) for i, w in enumerate(WORDS[:3])))
        # a line that is not UTF-8
        s = run(harbor, '2.1.119', 26, {}, events={12: lambda s: s.raw(
            s.form % (b'null', b'"type":"user","message":{"role":"user","content":"caf\xe9 \xff\xfe"}', uuid(s.rng), iso(s.t), b''))})
        s.flush()
        # a compressed one
        s = run(harbor, '2.1.217', 7, {})
        with open(s.path + '.gz', 'wb') as f, gzip.GzipFile('', 'wb', 9, f, mtime=0) as z:
            z.write(b''.join(s.out))


def size(text):
    number, unit = re.fullmatch(r'([\d.]+)\s*([kMG]?)B?', text).groups()
    return int(float(number) * {'': 1, 'k': 10**3, 'M': 10**6, 'G': 10**9}[unit])


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('out')
    p.add_argument('--layout', choices=['many', 'single', 'small'], default='many')
    p.add_argument('--bytes', type=size, default=size('1GB'))
    p.add_argument('--seed', type=int, default=7)
    p.add_argument('--big-line', type=size, default=0)
    p.add_argument('--days', type=int, default=30)
    p.add_argument('--end', default='2026-11-20')
    a = p.parse_args()
    projects, note = os.path.join(a.out, 'projects'), os.path.join(a.out, 'SYNTHETIC')
    if os.path.exists(projects) and not os.path.exists(note):
        p.error('%s exists and was not made by this script' % projects)
    shutil.rmtree(projects, ignore_errors=True)
    os.makedirs(a.out, exist_ok=True)
    with open(note, 'w') as f:
        f.write('Generated by scripts/synthetic_history.py; no line comes from a real session.\n')
    small = a.layout == 'small'
    world = World(a.out, a.seed, a.days, a.end, .02 if small else 1)
    if small:
        world.small()
    elif a.layout == 'single':
        world.single(a.bytes, a.big_line)
    else:
        world.many(a.bytes)


if __name__ == '__main__':
    main()
