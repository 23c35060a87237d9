#!/usr/bin/env python3
"""Fingerprints of endpoints, tools and follow-up edges from the light rows of a team on Apache Spark: the rows and tables of
`devboy pool --rows`, to the digit.

    spark-submit --py-files scripts/fleet/spark_pool.py,scripts/fleet/pooling.py,scripts/fleet/tables.py \\
        scripts/fleet/spark_rows.py --rules rules/fleet.toml --output s3a://bucket/pool s3a://bucket/team

A directory is `user=<pseudonym>/week=<Monday>/rows.parquet`, wherever Spark can read, as `devboy share --rows` writes it. Only what
`devboy pool --rows` accepts may lie there: run it once with the same directories to see what it refuses. Spark counts every row
(a group for each measure); what stands on enough people is decided as for contributions.
"""

import functools
import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_pool import asked, given, published

# Columns of rows and the measures that are histograms of them; a value below 0 is none.
HISTOGRAMS = [("bytes", "bytes", 0), ("repeat_distance", "distance", 0), ("columns", "columns", 1), ("latency_ms", "latency_ms", 0)]
FORMATS = 14


def bin_of(column):
    """As in src/fleet/measure.rs: exact below 16, then eight to a doubling."""
    power = f"(length(bin({column})) - 1)"
    return F.expr(f"CAST(IF({column} < 16, {column}, 16 + 8 * ({power} - 4) + (shiftright({column}, {power} - 3) & 7)) AS INT)")


def counts_of(rows, limits):
    """The counts of each person and week, as `devboy share` makes them: (user, week, kind, name, other, lag, measure, bin, count)."""
    def counted(of, kind, name, other, lag, measure, bin_, count):
        return of.groupBy("user", "week", F.lit(kind).alias("kind"), F.col(name).alias("name"), other.alias("other"),
                          lag.alias("lag"), F.lit(measure).alias("measure"), bin_.alias("bin")).agg(count.cast("long").alias("count"))

    none, zero, one = F.lit(""), F.lit(0), F.count(F.lit(1))
    sessions = F.countDistinct("session")
    answers = rows.where("counts_in & 1 = 1")
    endpoint = lambda of, measure, bin_, count: counted(of, "endpoint", "endpoint", F.col("tool"), zero, measure, bin_, count)
    parts = [endpoint(answers, measure, zero, count) for measure, count in [
        ("calls", one), ("sessions", sessions), ("baseline_tokens", F.sum("baseline_tokens")),
        ("sent_tokens", F.sum(F.expr("greatest(baseline_tokens - saved_tokens, 0)")))]]
    parts += [endpoint(answers.where("repeat_distance >= 0"), "repeats", zero, one),
              endpoint(answers, "shape", F.col("shape").cast("int"), one)]
    parts += [endpoint(answers.where(f"{column} >= {least}"), measure, bin_of(column), one) for column, measure, least in HISTOGRAMS]
    formats = answers.select("*", F.explode(F.sequence(F.lit(0), F.lit(FORMATS - 1))).alias("format"))
    formats = formats.where("shiftright(inner_formats, format) & 1 = 1")
    parts.append(endpoint(formats, "inner_format", F.col("format"), one))
    steps = rows.where("counts_in & 2 = 2")
    parts += [counted(steps, "tool", "tool", none, zero, measure, zero, count) for measure, count in
              [("steps", one), ("sessions", sessions)]]
    for lag in limits["lags"]:
        followed = steps.where(f"after_{lag} <> ''").select("*", F.explode(F.split(f"after_{lag}", " ")).alias("to"))
        parts += [counted(followed, "edge", "tool", F.col("to"), F.lit(lag), measure, zero, count) for measure, count in
                  [("support", one), ("sessions", sessions)]]
    return functools.reduce(DataFrame.unionByName, parts).where("count > 0")


def main():
    args, limits, roster, spark = asked(__doc__)
    rows = given(spark, args.directories, "rows.parquet")
    return published(spark, counts_of(rows, limits), roster, limits, args)


if __name__ == "__main__":
    sys.exit(main())
