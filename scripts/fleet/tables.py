"""The tables of `devboy pool --by endpoints|tools|edges|what-if` from published rows: whole numbers are summed, divisions come last.
A share and its whole are sums over the weeks and batches that tell both.

A row is (week, batch, kind, name, other, lag, measure, bin, count, people).
"""

from collections import defaultdict

from pooling import EDGE, ENDPOINT, MEASURES, OTHER, TOOL, WHAT_IF, quantile

# As in src/base/body_shape.rs.
SHAPES = ["unknown", "empty", "prose", "numbered_list", "bullet_list", "code_block", "markdown_table", "nested_object",
          "flat_object", "array_of_objects", "array_of_primitives"]
Z = 1.96
# Measures that count some of another: of the same subject, or, of an edge, of its earlier tool.
WHOLES = {"repeats": "calls", "sent_tokens": "baseline_tokens", "support": "steps"}


class Summed:
    """What all weeks and batches say of a subject."""

    def __init__(self):
        self.bins, self.parts, self.people, self.shares = defaultdict(lambda: defaultdict(int)), 0, [], {}

    def number(self, measure):
        return self.bins[measure][0] if 0 in self.bins.get(measure, {}) else None

    def quantile(self, measure, percent):
        return quantile(self.bins.get(measure, {}), percent)

    def shape(self):
        known = [(count, SHAPES[bin_]) for bin_, count in self.bins.get("shape", {}).items() if bin_ not in (0, OTHER)]
        best = max((count for count, _ in known), default=None)
        return min((name for count, name in known if count == best), default="")


def summed(rows):
    rows = list(rows)
    wholes = {(*row[:6], row[6]): row[8] for row in rows if row[6] in WHOLES.values()}
    out = defaultdict(Summed)
    for row in rows:
        subject, measure, bin_, count, people = row[2:6], row[6], row[7], row[8], row[9]
        of = out[subject]
        of.bins[measure][bin_] += count
        root = (TOOL, subject[1], "", 0) if subject[0] == EDGE else subject
        whole = wholes.get((*row[:2], *root, WHOLES.get(measure)))
        if whole is not None:
            part_before, whole_before = of.shares.get(measure, (0, 0))
            of.shares[measure] = (part_before + count, whole_before + whole)
        if measure == MEASURES[subject[0]][0][0]:
            of.parts, of.people = of.parts + 1, of.people + [people]
    return dict(out)


def of_kind(all_, kind):
    weight = MEASURES[kind][0][0]
    rows = [(subject, row) for subject, row in all_.items() if subject[0] == kind]
    return sorted(rows, key=lambda pair: (-(pair[1].number(weight) or 0), pair[0]))


def endpoints(all_):
    for (_, name, tool, _), row in of_kind(all_, ENDPOINT):
        repeats, calls = row.shares.get("repeats", (None, None))
        sent, baseline = row.shares.get("sent_tokens", (None, None))
        yield (name, tool, row.number("calls"), row.parts, min(row.people), row.quantile("bytes", 50), row.quantile("bytes", 99),
               row.shape(), repeats, calls, repeats / calls if calls else None,
               row.quantile("distance", 90), row.quantile("latency_ms", 50), row.quantile("latency_ms", 90), baseline, sent)


def tools(all_):
    for (_, name, _, _), row in of_kind(all_, TOOL):
        yield name, row.number("steps"), row.parts, min(row.people)


def lower(k, n):
    """Wilson's lower end."""
    if n == 0:
        return 0.0
    p, z2 = k / n, Z * Z
    centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)) ** 0.5
    return max(centre - half, 0.0)


def edges(all_):
    for (_, name, to, lag), row in of_kind(all_, EDGE):
        support, steps = row.shares.get("support", (None, None))
        k, n = min(support or 0, steps or 0), steps or 0
        yield name, to, lag, support, steps, row.parts, min(row.people), k / n if n else 0.0, lower(k, n)


def what_if(all_):
    for (_, name, _, _), row in of_kind(all_, WHAT_IF):
        log, policy = row.number("log_tokens"), row.number("policy_tokens")
        change = policy / log - 1.0 if log and policy is not None else None
        yield name, row.number("sessions"), row.parts, min(row.people), log, policy, change


TABLES = {"endpoints": endpoints, "tools": tools, "edges": edges, "what_if": what_if}


def equal(one, other):
    """Whether two rows are: whole numbers and names to the digit, quotients to the last bits."""
    def same(a, b):
        if isinstance(a, float) and isinstance(b, float):
            return abs(a - b) <= 1e-12 * max(1.0, abs(a))
        return a == b
    return len(one) == len(other) and all(map(same, one, other))
