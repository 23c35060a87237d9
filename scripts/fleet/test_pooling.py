#!/usr/bin/env python3
"""The pure half of the Spark job against small cases worked out by hand: python3 scripts/fleet/test_pooling.py"""

import unittest

import pooling
import tables

LIMITS = {"people_min": 5, "share_max_pct": 50, "lags": [1, 2, 3]}


def people(*counts):
    return dict(enumerate(counts))


class Pooling(unittest.TestCase):
    def test_a_count_stands_on_five_people_of_whom_none_has_more_than_half(self):
        self.assertTrue(pooling.stands(people(1, 1, 1, 1, 4), LIMITS))
        self.assertFalse(pooling.stands(people(1, 1, 1, 1, 5), LIMITS))
        self.assertFalse(pooling.stands(people(1, 1, 1, 1), LIMITS))

    def test_bins_are_joined_without_losing_a_count(self):
        bins = {3: people(1, 1), 4: {2: 1, 3: 1, 4: 5}, 9: people(2, 2, 2, 2, 2), 20: {0: 1}}
        told = pooling.joined(bins, LIMITS)
        self.assertEqual([bin_ for bin_, _ in told], [9])
        self.assertEqual(sum(sum(counts.values()) for _, counts in told), 20)
        self.assertEqual(pooling.joined({1: people(1, 1)}, LIMITS), [])

    def test_rare_kinds_are_gathered(self):
        told = pooling.gathered({0: people(3, 3, 3, 3, 3), 1: people(9, 9, 9, 9, 9), 2: {0: 1}}, LIMITS)
        self.assertEqual([(kind, sum(counts.values())) for kind, counts in told], [(1, 45), (pooling.OTHER, 16)])

    def test_the_rest_of_a_whole_stands_or_is_nothing(self):
        whole = people(10, 10, 10, 10, 10)
        parts = {"a": people(6, 6, 6, 6, 6), "b": people(3, 4, 4, 4, 4)}
        self.assertEqual(pooling.taken_back(whole, parts, LIMITS), {"b"})
        parts["b"] = people(4, 4, 4, 4, 4)
        self.assertEqual(pooling.taken_back(whole, parts, LIMITS), set())

    def test_what_a_count_leaves_of_its_whole_stands_or_it_is_not_told(self):
        cells = {"calls": {0: people(9, 9, 9, 9, 9)}, "repeats": {0: people(5, 5, 5, 5, 5)}, "baseline_tokens": {0: people(50, 50, 50, 50, 50)},
                 "sent_tokens": {0: people(40, 50, 50, 50, 50)}, "latency_ms": {3: people(8, 9, 9, 9, 9)},
                 "inner_format": {1: people(8, 9, 9, 9, 9), 2: people(9, 9, 9, 9, 9)}, "sessions": {0: people(2, 2, 2, 2, 1)}}
        tool = {"sessions": {0: people(2, 2, 2, 2, 2)}}
        told = {(measure, bin_) for measure, bin_, count, _ in pooling.rows_of(("endpoint", "Read", "Read", 0), cells, tool, LIMITS) if count}
        self.assertEqual(told, {("calls", 0), ("repeats", 0), ("baseline_tokens", 0), ("inner_format", 2)})
        # Parts that overlap are more than the whole, and one of them leaves a step of one person.
        whole, parts = people(9, 9, 9, 9, 9), {"a": people(8, 9, 9, 9, 9), "b": people(9, 9, 9, 9, 9)}
        self.assertEqual(pooling.taken_back(whole, parts, LIMITS), {"a"})

    def test_another_setting_is_told_with_what_it_is_a_share_of_or_not_at_all(self):
        cells = {("what_if", "cache-1h", "", 0): {"log_tokens": {0: people(9, 9, 9, 9, 9)},
                                                 "policy_tokens": {0: people(8, 8, 8, 8, 8)}}}
        self.assertEqual(len(pooling.told(cells, LIMITS)), 1)
        cells["what_if", "cache-1h", "", 0]["policy_tokens"][0] = people(8, 1, 1, 1, 1)
        self.assertEqual(pooling.told(cells, LIMITS), set())
        cells["what_if", "cache-1h", "", 0]["policy_tokens"][0] = people(9, 9, 9, 9, 8)
        self.assertEqual(pooling.told(cells, LIMITS), set())

    def test_tables_are_sums_of_rows_with_divisions_last(self):
        tool, edge = ("tool", "Read", "", 0), ("edge", "Read", "Edit", 1)
        rows = [("w1", 0, *tool, "steps", 0, 60, 6), ("w2", 0, *tool, "steps", 0, 40, 5), ("w1", 0, *edge, "support", 0, 25, 5)]
        one = [("calls", 0, 60, 6), ("repeats", 0, 15, 6), ("baseline_tokens", 0, 600, 6), ("sent_tokens", 0, 590, 6)]
        other = [("calls", 0, 40, 5), ("shape", 2, 40, 5), ("baseline_tokens", 0, 4000, 5)]
        rows += [("w1", 0, "endpoint", "Read", "Read", 0, *rest) for rest in one]
        rows += [("w2", 0, "endpoint", "Read", "Read", 0, *rest) for rest in other]
        all_ = tables.summed(rows)
        self.assertEqual(list(tables.tools(all_)), [("Read", 100, 2, 5)])
        # Each share is one of the weeks that tell it.
        row = next(tables.edges(all_))
        self.assertEqual((row[3:5], round(row[7], 4), round(row[8], 4)), ((25, 60), 0.4167, 0.3006))
        row = next(tables.endpoints(all_))
        self.assertEqual((row[7:11], row[14:]), (("prose", 15, 60, 0.25), (600, 590)))

    def test_bins_and_quantiles(self):
        self.assertEqual([pooling.middle(bin_) for bin_ in (0, 15, 16, 17, 24)], [0, 15, 16, 18, 33])
        self.assertEqual(pooling.quantile({1: 5, 2: 5}, 50), 1)
        self.assertEqual(pooling.quantile({1: 4, 2: 6}, 50), 2)
        self.assertIsNone(pooling.quantile({}, 50))

    def test_batches_are_whole_and_large_enough(self):
        roster = {"weeks": {"w": [{name: "digest" for name in "abcde"}]}}
        there = set("abcde") | {"f", "g"}
        self.assertEqual(pooling.batches(roster, {"w": there}, LIMITS), {("w", name): 0 for name in "abcde"})
        self.assertEqual(pooling.batches(roster, {"w": there - {"a"}}, LIMITS), {})
        more = there | {"h", "i", "j"}
        self.assertEqual(set(pooling.batches(roster, {"w": more}, LIMITS).values()), {0, 1})
        # Two rosters that did not know of each other: nobody is pooled twice, and who was pooled is spent.
        roster["weeks"]["w"].append({name: "digest" for name in "abcdef"})
        self.assertEqual(pooling.batches(roster, {"w": there}, LIMITS), {("w", name): 1 for name in "abcdef"})


if __name__ == "__main__":
    unittest.main()
