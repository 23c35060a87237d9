"""What devboy's `pool` does, as plain functions over plain values: the half of the Spark job that needs no Spark.

A count is ((kind, name, other, lag), measure, bin, count) of one person in one week. All arithmetic is over whole numbers, so
that the sums are devboy's own to the digit.
"""

from collections import defaultdict

ENDPOINT, TOOL, EDGE, WHAT_IF = "endpoint", "tool", "edge", "what_if"
NUMBER, HISTOGRAM, CATEGORY = "number", "histogram", "category"
OTHER = 999

# As in src/fleet/measure.rs; the first of each kind weighs the people.
MEASURES = {
    ENDPOINT: [
        ("calls", NUMBER), ("sessions", NUMBER), ("repeats", NUMBER), ("baseline_tokens", NUMBER),
        ("sent_tokens", NUMBER), ("bytes", HISTOGRAM), ("distance", HISTOGRAM), ("columns", HISTOGRAM),
        ("latency_ms", HISTOGRAM), ("shape", CATEGORY), ("inner_format", CATEGORY),
    ],
    TOOL: [("steps", NUMBER), ("sessions", NUMBER)],
    EDGE: [("support", NUMBER), ("sessions", NUMBER)],
    WHAT_IF: [("log_tokens", NUMBER), ("sessions", NUMBER), ("policy_tokens", NUMBER)],
}


def stands(counts, limits):
    """Whether enough people have a part in a count, and none of them too large a one."""
    return len(counts) >= limits["people_min"] and (
        max(counts.values()) * 100 <= sum(counts.values()) * limits["share_max_pct"]
    )


def absorb(into, more):
    for person, count in more.items():
        into[person] = into.get(person, 0) + count


def joined(bins, limits):
    """Neighbouring bins joined until each stands; a joined bin has the name of the one with its median."""
    groups, members, counts = [], [], {}
    for bin_, of_bin in sorted(bins.items()):
        members.append((bin_, of_bin))
        absorb(counts, of_bin)
        if stands(counts, limits):
            groups.append((members, counts))
            members, counts = [], {}
    while members:
        if not groups:
            return []
        members, counts = groups.pop()[0] + members, {}
        for _, of_bin in members:
            absorb(counts, of_bin)
        if stands(counts, limits):
            groups.append((members, counts))
            break
    return [(median(members), counts) for members, counts in groups]


def median(members):
    total, reached = sum(sum(counts.values()) for _, counts in members), 0
    for bin_, counts in members:
        reached += sum(counts.values())
        if 2 * reached >= total:
            return bin_
    return members[-1][0]


def gathered(kinds, limits):
    """Kinds that stand, and all others as one to which the rarest of the rest are added until it stands too."""
    told = {kind: counts for kind, counts in kinds.items() if stands(counts, limits)}
    other = {}
    for kind, counts in kinds.items():
        if kind not in told:
            absorb(other, counts)
    while other and not stands(other, limits):
        if not told:
            return []
        rarest = min(told, key=lambda kind: (sum(told[kind].values()), kind))
        absorb(other, told.pop(rarest))
    return sorted(told.items()) + ([(OTHER, other)] if other else [])


def leaves_enough(whole, parts, limits):
    """Whether what parts leave of a whole stands too, or is nothing."""
    left = {person: count for person, count in rest(whole, parts).items() if count > 0}
    return not left or stands(left, limits)


def differs_enough(one, other, limits):
    """The same of two numbers of which either may be the larger."""
    left = {person: abs(count) for person, count in rest(one, [other]).items() if count}
    return not left or stands(left, limits)


def rest(whole, parts):
    left = dict(whole)
    for part in parts:
        for person, count in part.items():
            left[person] = left.get(person, 0) - count
    return left


def taken_back(whole, parts, limits):
    """The parts of a told whole that are taken back: each one that leaves too little by itself, then the smallest first, until
    what remains stands or is nothing."""
    back = {part for part in parts if not leaves_enough(whole, [parts[part]], limits)}
    told = sorted(parts.keys() - back, key=lambda part: (-sum(parts[part].values()), part))
    while told and not leaves_enough(whole, [parts[part] for part in told], limits):
        back.add(told.pop())
    return back


def weight(subject, cells):
    return cells.get(MEASURES[subject[0]][0][0], {}).get(0, {})


def told(cells, limits):
    """The subjects that are told."""
    def is_told(subject):
        # What another setting comes to is a share of what was: both or none.
        counts = weight(subject, cells[subject])
        policy = cells[subject].get("policy_tokens", {}).get(0) or {}
        has_share = subject[0] != WHAT_IF or stands(policy, limits) and differs_enough(counts, policy, limits)
        return bool(counts) and stands(counts, limits) and has_share

    whole = {subject for subject in cells if is_told(subject)}
    out = {subject for subject in whole if subject[0] != EDGE or (TOOL, subject[1], "", 0) in whole}
    for tool in sorted(subject for subject in whole if subject[0] == TOOL):
        steps = weight(tool, cells[tool])
        groups = [lambda s: s[0] == ENDPOINT and s[2] == tool[1]]
        groups += [lambda s, lag=lag: s[0] == EDGE and s[1] == tool[1] and s[3] == lag for lag in limits["lags"]]
        for is_part in groups:
            parts = {subject: weight(subject, cells[subject]) for subject in out if is_part(subject)}
            out -= taken_back(steps, parts, limits)
    return out


def whole_of(subject, measure, cells, tool):
    """What a measure of a subject counts some of."""
    if measure in ("repeats", "distance", "columns", "latency_ms", "inner_format"):
        return weight(subject, cells)
    if measure == "sent_tokens":
        return cells.get("baseline_tokens", {}).get(0)
    return tool.get("sessions", {}).get(0) if measure == "sessions" else None


def parts_kept(bins, measure, whole, limits):
    """What leaves enough of its whole: a format by itself, since a response can have several, and all others as one."""
    if measure == "inner_format":
        return {bin_: counts for bin_, counts in bins.items() if leaves_enough(whole, [counts], limits)}
    return bins if leaves_enough(whole, bins.values(), limits) else {}


def rows_of(subject, cells, tool, limits):
    """The rows of a told subject: (measure, bin, count, people)."""
    everybody = len(weight(subject, cells))
    for measure, form in MEASURES[subject[0]]:
        bins = cells.get(measure, {})
        if form == NUMBER and not bins:
            yield measure, 0, 0, everybody
            continue
        whole = whole_of(subject, measure, cells, tool)
        bins = bins if whole is None else parts_kept(bins, measure, whole, limits)
        if form == NUMBER:
            kept = [(bin_, counts) for bin_, counts in bins.items() if stands(counts, limits)]
        else:
            kept = (joined if form == HISTOGRAM else gathered)(bins, limits)
        for bin_, counts in kept:
            yield measure, bin_, sum(counts.values()), len(counts)


def root(subject):
    """What is pooled in one piece: a tool with its endpoints and what follows it, or another setting."""
    return subject[2] if subject[0] == ENDPOINT else subject[1]


def pooled(counts, limits):
    """The published rows of a batch of people: `counts` are (person, subject, measure, bin, count), of a week and of as many
    roots as there are."""
    cells = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for person, subject, measure, bin_, count in counts:
        cells[subject][measure][bin_][person] = count
    for subject in told(cells, limits):
        tool = cells.get((TOOL, root(subject), "", 0), {}) if subject[0] in (ENDPOINT, EDGE) else {}
        for row in rows_of(subject, cells[subject], tool, limits):
            yield (*subject, *row)


def overlapping(known):
    """The numbers of batches that have a person in common with a larger one that is pooled."""
    pooled, out = set(), set()
    for number, batch in sorted(enumerate(known), key=lambda pair: (-len(pair[1]), sorted(pair[1].items()))):
        if pooled & batch.keys():
            out.add(number)
        else:
            pooled |= batch.keys()
    return out


def batches(roster, people, limits):
    """Of each week the batches: those of the roster whose people are all there and in no other, and one of all others if they
    are enough."""
    out = []
    for week, there in people.items():
        of_week = roster.get("weeks", {}).get(week, [])
        known, twice = [set(batch) for batch in of_week], overlapping(of_week)
        out += [(week, number, batch) for number, batch in enumerate(known) if batch <= there and number not in twice]
        fresh = there.difference(*known)
        if len(fresh) >= limits["people_min"]:
            out.append((week, len(known), fresh))
    return {(week, person): number for week, number, batch in out for person in batch}


def lowest(bin_):
    if bin_ < 16:
        return bin_
    power, part = (bin_ - 16) // 8 + 4, (bin_ - 16) % 8
    return (8 + part) << (power - 3)


def middle(bin_):
    """What stands for the values of a bin."""
    return (lowest(bin_) + lowest(bin_ + 1) - 1) // 2


def quantile(bins, percent):
    """The middle of the first bin up to which `percent` of all counts lie."""
    total, reached = sum(bins.values()), 0
    for bin_, count in sorted(bins.items()):
        reached += count
        if count > 0 and reached * 100 >= total * percent:
            return middle(bin_)
    return None
