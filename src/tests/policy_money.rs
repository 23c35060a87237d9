//! Prices: golden vectors, every published row, and tables that cannot be.

use super::timeline_builder::{NOON, Story};
use crate::base::names::Names;
use crate::logs::trace::NO_TIME;
use crate::whatif::sim::cost::{Spent, UNITS_PER_TOKEN};
use crate::whatif::sim::money::{PerToken, Prices, Rates, Tariff, unpriced_models};

/// policies.md 9: request (50851, 39881, input 8) in twentieths of an input token.
#[test]
fn the_golden_request_costs_1_697_102_twentieths_and_1_098_887_for_five_minutes() {
    let hour = Spent { read: 50_851, write_1h: 39_881, uncached: 8, ..Spent::default() };
    let five = Spent { write_1h: 0, write_5m: hour.write_1h, ..hour };
    let rates = Prices::shipped().rates("claude-opus-4-5-20251101", NOON, 90_740).unwrap();
    let twentieths = |spent: &Spent| rates.cost(spent).units / u128::from(UNITS_PER_TOKEN / 20);
    assert_eq!((twentieths(&hour), twentieths(&five)), (1_697_102, 1_098_887));
    assert_eq!(Rates::USUAL.cost(&hour).units, rates.cost(&hour).units, "usual ratios are those of this model");
    assert_eq!(Rates::USUAL.cost(&hour).unpriced_tokens, 90_740);
    // 0.050851 M at $0.50, 0.039881 M at $10, 8 at $5.
    assert_eq!(rates.cost(&hour).nano_usd, 25_425_500 + 398_810_000 + 40_000);
    assert_eq!(format!("{:.6}", rates.cost(&hour).usd().unwrap()), "0.424276");
}

/// Dollars per million tokens as published: input, 5 minutes, 1 hour, read, output, in thousandths.
#[test]
fn every_published_price_is_in_the_table() {
    let published: &[(&str, [u64; 5])] = &[
        ("claude-opus-4-5-20251101", [5_000, 6_250, 10_000, 500, 25_000]),
        ("claude-opus-4-6", [5_000, 6_250, 10_000, 500, 25_000]),
        ("claude-opus-4-7", [5_000, 6_250, 10_000, 500, 25_000]),
        ("us.anthropic.claude-opus-4-8-v1:0", [5_000, 6_250, 10_000, 500, 25_000]),
        ("claude-opus-5", [5_000, 6_250, 10_000, 500, 25_000]),
        ("claude-opus-5-5", [4_000, 5_000, 8_000, 200, 20_000]),
        ("claude-opus-4-1-20250805", [15_000, 18_750, 30_000, 1_500, 75_000]),
        ("claude-opus-4-20250514", [15_000, 18_750, 30_000, 1_500, 75_000]),
        ("claude-sonnet-4-20250514", [3_000, 3_750, 6_000, 300, 15_000]),
        ("claude-sonnet-4-5-20250929", [3_000, 3_750, 6_000, 300, 15_000]),
        ("claude-sonnet-4-6", [3_000, 3_750, 6_000, 300, 15_000]),
        ("claude-sonnet-5", [2_000, 2_500, 4_000, 200, 10_000]),
        ("claude-sonnet-5-5", [2_000, 2_500, 4_000, 200, 10_000]),
        ("claude-haiku-4-5-20251001", [1_000, 1_250, 2_000, 100, 5_000]),
        ("claude-3-5-haiku-20241022", [800, 1_000, 1_600, 80, 4_000]),
        ("claude-3-haiku-20240307", [250, 300, 500, 30, 1_250]),
        ("claude-fable-5", [10_000, 12_500, 20_000, 1_000, 50_000]),
        ("claude-mythos-5", [10_000, 12_500, 20_000, 1_000, 50_000]),
        ("claude-fable-5-1", [10_000, 12_500, 20_000, 250, 50_000]),
        ("claude-mythos-5-1", [10_000, 12_500, 20_000, 250, 50_000]),
    ];
    for (model, wanted) in published {
        let nano = Prices::shipped().rates(model, NOON, 1_000).and_then(|rates| rates.nano_usd);
        let found = nano.map(|nano| [nano.input, nano.write_5m, nano.write_1h.unwrap(), nano.read, nano.output]);
        assert_eq!(found, Some(*wanted), "{model}");
    }
    assert!(Prices::shipped().rates("claude-fable-5-2", NOON, 1_000).is_none());
    assert!(Prices::shipped().rates("claude-opus-4-55", NOON, 1_000).is_none(), "no loose pattern");
}

const DAY: i64 = 86_400_000;
/// 7 October 2026, 00:00 UTC.
const OCTOBER_7: i64 = 1_791_331_200_000;

#[test]
fn a_call_to_another_model_has_its_price_and_counts_as_input_of_the_first() {
    let mut names = Names::default();
    let models = ["claude-opus-4-5-20251101", "claude-haiku-4.5", "gpt-9"];
    let [opus, haiku, other] = models.map(|model| names.intern(model));
    let prices = Prices::shipped();
    let tariff = Tariff::new(prices, &names);
    let spent = Spent { uncached: 1_000, output: 100, ..Spent::default() };
    let call = |model, asked| tariff.cost_of_call(model, asked, NOON, &spent);
    assert_eq!(call(opus, None), tariff.cost(opus, NOON, &spent));
    assert_eq!(call(opus, Some(opus)), tariff.cost(opus, NOON, &spent));
    // 1,000 at $1 and 100 at $5 are $0.0015: as much as 300 tokens of input at $5.
    let cheap = call(opus, Some(haiku));
    assert_eq!((cheap.nano_usd, cheap.units, cheap.unpriced_tokens), (1_500_000, 300 * 200, 0));
    assert_eq!(call(haiku, Some(opus)).units, 7_500 * 200);
    assert_eq!(call(opus, Some(other)).unpriced_tokens, 1_100);
    assert_eq!(call(other, Some(haiku)).nano_usd, 1_500_000);
}

#[test]
fn a_price_changes_at_midnight_of_its_first_day() {
    let read = |at| Prices::shipped().rates("claude-sonnet-5-5", at, 1_000).unwrap().nano_usd.unwrap().read;
    assert_eq!((read(OCTOBER_7 - 1), read(OCTOBER_7)), (200, 100));
    assert_eq!(read(NO_TIME), 100, "without a time the newest price holds");
    let haiku = |at| Prices::shipped().rates("claude-haiku-5-5", at, 1_000);
    assert!(haiku(OCTOBER_7 - 1).is_none() && haiku(OCTOBER_7 + DAY).is_some());
}

#[test]
fn the_limit_of_a_band_belongs_to_the_lower_one_and_the_whole_request_moves() {
    let input = |prompt| Prices::shipped().rates("claude-haiku-5-5", OCTOBER_7, prompt).unwrap();
    assert_eq!(input(100_000).nano_usd.unwrap().input, 100);
    assert_eq!(input(100_001).nano_usd.unwrap().input, 500);
    assert_eq!(input(0).nano_usd.unwrap().input, 100);
    assert_eq!(input(100_001).units.input, 5 * UNITS_PER_TOKEN, "in input tokens of a short prompt");
    let beta = Prices::shipped().rates("claude-sonnet-4-5", NOON, 200_001).unwrap();
    let hour = Spent { write_1h: 10, uncached: 5, ..Spent::default() };
    assert_eq!(beta.cost(&hour).unpriced_tokens, 15, "no price of an hour is known there");
    assert_eq!(beta.cost(&Spent { uncached: 5, ..Spent::default() }).nano_usd, 5 * 6_000);
}

const ROW: &str =
    "[[price]]\nmodels = [\"m\"]\ninput = 1\nwrite_5m = 1.25\nwrite_1h = 2\nread = 0.1\noutput = 5\nsource = \"\"\n";

#[test]
fn prices_that_hold_together_are_an_error_with_both_places() {
    let row = |more: &str| ROW.replace("input = 1\n", &format!("input = 1\n{more}\n"));
    let two = |first: &str, second: &str| Prices::parse(&(row(first) + &row(second)), "p.toml");
    let clash = two("to = 2026-10-07", "from = 2026-10-07").unwrap_err().to_string();
    assert!(clash.starts_with("p.toml:10: a price of m that holds together with p.toml:1"), "{clash}");
    assert!(two("to = 2026-10-06", "from = 2026-10-07").is_ok());
    assert!(two("prompt_up_to = 5", "prompt_above = 5").is_ok());
    assert!(two("prompt_up_to = 6", "prompt_above = 5").is_err());
    assert!(two("", "from = 2026-10-07").is_err());
}

#[test]
fn tables_that_make_no_sense_are_refused_with_their_line() {
    let broken = |from: &str, to: &str| {
        let text = format!("# prices\n{}", ROW.replace(from, to));
        Prices::parse(&text, "p.toml").unwrap_err().to_string()
    };
    assert!(broken("read = 0.1", "read = 0.1001").starts_with("p.toml:2: `read = 0.1001` is no whole number"));
    assert!(broken("read = 0.1", "read = 0.123").contains("no multiple of 1/200"));
    assert!(broken("read = 0.1", "read = -1").starts_with("p.toml:2: "));
    assert!(broken("input = 1", "input = 0").contains("p.toml:2"));
    assert!(broken("input = 1", "input = 1\nfrom = 2026-03-02\nto = 2026-03-01").contains("holds never"));
    assert!(broken("input = 1", "input = 1\nfrom = 12:30:00").contains("is no day"));
    assert!(broken("read = 0.1", "raed = 0.1").contains("p.toml"));
    assert!(broken("[[price]]", "[price").contains("p.toml"));
}

#[test]
fn models_without_a_price_are_named_and_their_tokens_counted() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 900, 100).says(5);
    log.model("gpt-9").human(10).ask(0, 900, 100).says(5);
    let timeline = log.done();
    assert_eq!(unpriced_models(&timeline, Prices::shipped()).into_keys().collect::<Vec<_>>(), ["gpt-9"]);
}

proptest::proptest! {
    /// Cost is linear: what two requests cost together is what they cost apart.
    #[test]
    fn costs_of_tokens_add_up_exactly(a in proptest::array::uniform5(0_u64..1 << 40), b in proptest::array::uniform5(0_u64..1 << 40)) {
        let spent = |[read, write_5m, write_1h, uncached, output]: [u64; 5]| Spent { read, write_5m, write_1h, uncached, output };
        let (a, b) = (spent(a), spent(b));
        for model in ["claude-opus-4-5", "claude-fable-5-1", "claude-3-haiku-20240307"] {
            let rates = Prices::shipped().rates(model, NOON, 1).unwrap();
            proptest::prop_assert_eq!(rates.cost(&a) + rates.cost(&b), rates.cost(&(a + b)));
        }
    }

    /// Cost is linear in the table of rates, too, and sums are exact: each rate has its own part.
    #[test]
    fn costs_are_linear_in_the_rates(
        tokens in proptest::array::uniform5(0_u64..1 << 40),
        rates in proptest::array::uniform5(0_u64..100_000), others in proptest::array::uniform5(0_u64..100_000),
    ) {
        let table = |[input, write_5m, write_1h, read, output]: [u64; 5]| {
            let one = PerToken { input, write_5m, write_1h: Some(write_1h), read, output };
            Rates { nano_usd: Some(one), units: one, caches: true }
        };
        let [uncached, write_5m, write_1h, read, output] = tokens;
        let spent = Spent { read, write_5m, write_1h, uncached, output };
        let sum: [u64; 5] = std::array::from_fn(|rate| rates[rate] + others[rate]);
        let cost = table(sum).cost(&spent);
        proptest::prop_assert_eq!(table(rates).cost(&spent) + table(others).cost(&spent), cost);
        let by_hand: u128 = tokens.iter().zip(sum).map(|(&tokens, rate)| u128::from(tokens) * u128::from(rate)).sum();
        proptest::prop_assert_eq!((cost.units, cost.nano_usd), (by_hand, by_hand));
    }
}

#[test]
fn fast_mode_has_prices_of_its_own_and_what_is_not_published_has_none() {
    let rates = |model: &str| Prices::shipped().rates(model, NOON, 1_000);
    for (model, input, output) in [
        ("claude-opus-4-6", 30_000, 150_000),
        ("claude-opus-4-7", 30_000, 150_000),
        ("claude-opus-4-8", 10_000, 50_000),
    ] {
        let fast = rates(&format!("{model}-20260401[fast]")).expect("fast mode is in the table");
        let nano = fast.nano_usd.unwrap();
        assert_eq!((nano.input, nano.output, fast.caches), (input, output, false), "{model}");
        let plain = Spent { uncached: 10, output: 2, ..Spent::default() };
        assert_eq!(fast.cost(&plain).nano_usd, u128::from(10 * input + 2 * output));
        // No price of its cache is published: the tokens count, the dollars do not.
        let cached = fast.cost(&Spent { read: 90, ..plain });
        assert_eq!((cached.nano_usd, cached.unpriced_tokens), (0, 102));
        assert_eq!(cached.units, Rates::USUAL.cost(&Spent { read: 90, ..plain }).units);
    }
    assert!(rates("claude-sonnet-4-6[fast]").is_none(), "never the price of the standard speed");
    let odd = "[[price]]\nmodels = [\"a\"]\ninput = 1\nread = 0.1\noutput = 5\nsource = \"none\"\n";
    assert!(Prices::parse(odd, "odd.toml").unwrap_err().to_string().contains("some rates of the cache are missing"));
}
