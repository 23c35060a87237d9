#!/usr/bin/env python3
"""Fingerprints of endpoints, tools and follow-up edges from the light rows of a team on Apache Spark: the rows and tables of
`devboy pool --rows`, to the digit.

    spark-submit --py-files scripts/fleet/spark_pool.py,scripts/fleet/pooling.py,scripts/fleet/tables.py \\
        scripts/fleet/spark_rows.py --rules rules/fleet.toml --output s3a://bucket/pool s3a://bucket/team

A directory is `user=<pseudonym>/week=<Monday>/rows.parquet`, wherever Spark can read, as `devboy share --rows` writes it. Only what
`devboy pool --rows` accepts may lie there: run it once with the same directories to see what it refuses. Spark counts every row
by itself; what stands on enough people is decided as for contributions.
"""

import sys

from pyspark.sql import functions as F

from spark_pool import asked, given, published

# Columns of rows and the measures that are histograms of them, with the least value that counts.
HISTOGRAMS = [("bytes", "bytes", 0), ("repeat_distance", "distance", 0), ("columns", "columns", 1), ("latency_ms", "latency_ms", 0)]
FORMATS = 14
SUBJECT = ["user", "week", "kind", "name", "other", "lag"]


def bin_of(column):
    """As in src/fleet/measure.rs: exact below 16, then eight to a doubling."""
    power = f"(length(bin({column})) - 1)"
    return F.expr(f"IF({column} < 16, {column}, 16 + 8 * ({power} - 4) + (shiftright({column}, {power} - 3) & 7))")


def cell(kind, name, other, lag, measure, bin_, count):
    """What a row adds to a count."""
    return F.struct(F.lit(kind).alias("kind"), name.alias("name"), other.alias("other"), F.lit(lag).alias("lag"),
                    F.lit(measure).alias("measure"), bin_.cast("int").alias("bin"), count.cast("long").alias("count"))


def counts_of(rows, limits):
    """The counts of each person and week, as `devboy share` makes them: (user, week, kind, name, other, lag, measure, bin, count)."""
    zero, one, tool, is_answer, is_step = F.lit(0), F.lit(1), F.col("tool"), F.expr("counts_in & 1 = 1"), F.expr("counts_in & 2 = 2")

    def endpoint(measure, bin_, count, is_so="true"):
        return F.when(is_answer & F.expr(is_so), cell("endpoint", F.col("endpoint"), tool, 0, measure, bin_, count))

    cells = [endpoint("calls", zero, one), endpoint("baseline_tokens", zero, F.col("baseline_tokens")),
             endpoint("sent_tokens", zero, F.expr("greatest(baseline_tokens - saved_tokens, 0)")),
             endpoint("repeats", zero, one, "repeat_distance >= 0"), endpoint("shape", F.col("shape"), one)]
    cells += [endpoint(measure, bin_of(column), one, f"{column} >= {least}") for column, measure, least in HISTOGRAMS]
    cells += [endpoint("inner_format", F.lit(bit), one, f"shiftright(inner_formats, {bit}) & 1 = 1") for bit in range(FORMATS)]
    cells.append(F.when(is_step, cell("tool", tool, F.lit(""), 0, "steps", zero, one)))

    def followed(lag):
        names = F.when(is_step, F.filter(F.split(f"after_{lag}", " "), lambda to: to != "")).otherwise(F.array().cast("array<string>"))
        return F.transform(names, lambda to: cell("edge", tool, to, lag, "support", zero, one))

    cells = F.concat(F.array(*cells), *map(followed, limits["lags"]))
    of_rows = rows.select("user", "week", "session", F.explode(cells).alias("cell")).where("cell IS NOT NULL")
    of_rows = of_rows.select("user", "week", "session", "cell.*")
    sums = of_rows.groupBy(*SUBJECT, "measure", "bin").agg(F.sum("count").alias("count")).where("count > 0")
    in_sessions = of_rows.where("measure IN ('calls', 'steps', 'support')").groupBy(*SUBJECT)
    sessions = in_sessions.agg(F.lit("sessions").alias("measure"), F.lit(0).alias("bin"), F.countDistinct("session").alias("count"))
    return sums.unionByName(sessions)


def main():
    args, limits, roster, spark = asked(__doc__)
    rows = given(spark, args.directories, "rows.parquet").persist()
    return published(spark, counts_of(rows, limits), roster, limits, args)


if __name__ == "__main__":
    sys.exit(main())
