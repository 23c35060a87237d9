#!/usr/bin/env python3
"""Takes the projects of one person's Claude Code logs for people: OUT/person<n>/<n>/<file>, with times moved by whole weeks so that
the latest week in which a project was worked on is the last finished week, the one before it the week before, and so on.

usage: scripts/fleet/projects_as_people.py PROJECTS OUT [WEEKS]

A file is moved as a whole, by its first time. Nothing else in it changes, so OUT is as private as the logs are.
"""

import datetime
import pathlib
import re
import sys

TIME = re.compile(rb'("timestamp":\s*")(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}:)')
WEEK = datetime.timedelta(weeks=1)


def monday(day):
    return day - datetime.timedelta(days=day.weekday())


def moved(text, by):
    def one(found):
        return found[1] + (datetime.date.fromisoformat(found[2].decode()) + by).isoformat().encode() + found[3]
    return TIME.sub(one, text)


def main():
    if len(sys.argv) < 3 or "--help" in sys.argv:
        sys.exit(__doc__)
    projects, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    weeks_max = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    last = monday(datetime.datetime.now(datetime.timezone.utc).date()) - WEEK
    for number, project in enumerate(sorted(path for path in projects.iterdir() if path.is_dir())):
        files = {}
        for path in sorted(project.rglob("*.jsonl")):
            text = path.read_bytes()
            first = TIME.search(text)
            if first:
                files[path] = (text, monday(datetime.date.fromisoformat(first[2].decode())))
        weeks = sorted({week for _, week in files.values()}, reverse=True)[:weeks_max]
        for path, (text, week) in files.items():
            if week in weeks:
                place = out / f"person{number}" / str(number) / path.relative_to(project)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(moved(text, last - weeks.index(week) * WEEK - week))


if __name__ == "__main__":
    main()
