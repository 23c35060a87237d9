#!/usr/bin/env python3
"""Pools contributions of a team on Apache Spark: the rows that `devboy pool` publishes, to the digit.

    spark-submit --py-files scripts/fleet/pooling.py,scripts/fleet/tables.py scripts/fleet/spark_pool.py --rules rules/fleet.toml \\
        --output s3a://bucket/pool s3a://bucket/team

A directory is `user=<pseudonym>/week=<Monday>/contribution.parquet`, wherever Spark can read. Only what `devboy pool` accepts
may lie there: run it once with the same directories to see what it refuses, and pass `--roster FILE` of a former run to keep
its batches. What is pooled in one piece is a tool in a week: its endpoints and what follows it.
"""

import argparse
import functools
import json
import sys
import tomllib

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as of

from pooling import batches, pooled, root
from tables import TABLES, equal, summed

CONTRIBUTION = of.StructType([
    of.StructField("kind", of.StringType()), of.StructField("name", of.StringType()),
    of.StructField("other", of.StringType()), of.StructField("lag", of.IntegerType()),
    of.StructField("measure", of.StringType()), of.StructField("bin", of.IntegerType()),
    of.StructField("count", of.LongType()), of.StructField("user", of.StringType()),
    of.StructField("week", of.StringType()),
])
COLUMNS = ["week", "batch", "kind", "name", "other", "lag", "measure", "bin", "count", "people"]
POOLED = of.StructType([
    of.StructField(name, of.LongType() if name in ("count", "people") else
                   of.IntegerType() if name in ("batch", "lag", "bin") else of.StringType())
    for name in COLUMNS
])


def asked(about):
    """What the command line asks for: arguments, limits, roster, Spark."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--rules", required=True, help="rules/fleet.toml")
    parser.add_argument("--roster", help="pool-roster.json of a former run")
    parser.add_argument("--output", help="directory for Parquet")
    parser.add_argument("--against", help="directory of `devboy pool --publish`: say whether all rows and tables are equal")
    parser.add_argument("--table", choices=sorted(TABLES), help="print this table as CSV")
    args = parser.parse_args()
    with open(args.rules, "rb") as file:
        limits = tomllib.load(file)
    roster = json.load(open(args.roster)) if args.roster else {}
    spark = SparkSession.builder.appName("devboy pool").getOrCreate()
    # Partition columns as text: a week is a name here, not a date.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    return args, limits, roster, spark


def given(spark, directories, file, schema=None):
    """What the people gave in files of this name, with user and week."""
    read = lambda directory: (spark.read.schema(schema) if schema else spark.read).option("basePath", directory)
    parts = [read(directory).parquet(f"{directory}/user=*/week=*/{file}") for directory in directories]
    return functools.reduce(DataFrame.unionByName, parts).distinct()


def published(spark, counts, roster, limits, args):
    """Pools counts and writes, prints, compares what stands on enough people; 0 if all is equal."""
    counts = counts.persist()
    people = {}
    for week, user in counts.select("week", "user").distinct().collect():
        people.setdefault(week, set()).add(user)
    batch_of = spark.sparkContext.broadcast(batches(roster, people, limits))

    def keyed(row):
        """A count under its week, batch and tool; nothing where the person waits for more."""
        batch, subject = batch_of.value.get((row.week, row.user)), (row.kind, row.name, row.other, row.lag)
        if batch is not None:
            yield (row.week, batch, root(subject)), (row.user, subject, row.measure, row.bin, row["count"])

    def told(key_and_counts):
        (week, batch, _), of_tool = key_and_counts
        for row in pooled(of_tool, limits):
            yield (week, batch, *row)

    rows = counts.rdd.flatMap(keyed).groupByKey().flatMap(told)
    if args.output:
        spark.createDataFrame(rows, POOLED).write.mode("overwrite").parquet(args.output)
    found = rows.collect() if args.against or args.table else []
    if args.table:
        for row in TABLES[args.table](summed(found)):
            print(",".join("" if value is None else str(value) for value in row))
    is_equal = compared(spark, args.against, found) if args.against else True
    spark.stop()
    return 0 if is_equal else 1


def main():
    args, limits, roster, spark = asked(__doc__)
    return published(spark, given(spark, args.directories, "contribution.parquet", CONTRIBUTION), roster, limits, args)


def compared(spark, directory, rows):
    """Whether rows and tables are those of devboy."""
    found = set(rows)
    known = {tuple(row[name] for name in COLUMNS) for row in spark.read.parquet(f"{directory}/pool.parquet").collect()}
    print(f"{len(found & known)} rows are equal, {len(found - known)} only on Spark, {len(known - found)} only in devboy")
    for row in sorted(found ^ known)[:10]:
        print("differs:", row)
    is_equal, all_ = found == known, summed(rows)
    for name, table in TABLES.items():
        ours, theirs = list(table(all_)), [tuple(row) for row in spark.read.parquet(f"{directory}/{name}.parquet").collect()]
        same = len(ours) == len(theirs) and all(map(equal, ours, theirs))
        print(f"{name}: {len(theirs)} rows, {'equal' if same else 'not equal'}")
        for one, other in zip(ours, theirs):
            if not equal(one, other):
                print("differs:", one, other)
                break
        is_equal = is_equal and same
    return is_equal


if __name__ == "__main__":
    sys.exit(main())
