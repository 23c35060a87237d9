//! What tokens cost: a dated price table with all five rates of a model, and its look-up, in integers. Of a model that it does
//! not know tokens are summed, dollars are not, and input-equivalent tokens use the usual ratios.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::base::model_id;
use crate::base::names::{Names, Sym};
use crate::base::numbers::DAY_MS;
use crate::logs::timeline::requests::{FAST, Request, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::bill;
use crate::whatif::sim::cost::{Cost, Spent, UNITS_PER_TOKEN};

/// Nano-dollars of one token at one dollar per million.
const NANO_PER_LISTED_USD: f64 = 1_000.0;

/// One rate per kind of token, in any unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerToken {
    /// Neither read nor written.
    pub input: u64,
    /// Written for five minutes.
    pub write_5m: u64,
    /// Written for an hour; none where that is not sold.
    pub write_1h: Option<u64>,
    pub read: u64,
    pub output: u64,
}

/// What one model charges at one time for prompts of one length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// Nano-dollars; none if no price is known.
    pub nano_usd: Option<PerToken>,
    /// Units of [`UNITS_PER_TOKEN`]: the price over the model's input price (that of its short prompts, where long ones
    /// cost more).
    pub units: PerToken,
    /// Whether reads and writes of the cache have a price.
    pub caches: bool,
}

impl Rates {
    /// Usual ratios, no price: read 0.1, five minutes 1.25, an hour 2, output 5.
    pub const USUAL: Self = Self {
        nano_usd: None,
        units: PerToken { input: 200, write_5m: 250, write_1h: Some(400), read: 20, output: 1_000 },
        caches: true,
    };

    /// Price of these tokens.
    pub fn cost(&self, spent: &Spent) -> Cost {
        // Without a rate for the hour the tokens count as uncached twice over, as usual, and their dollars are unknown.
        let hour = self.units.write_1h.unwrap_or(2 * self.units.input);
        let units = sum(spent, &self.units, hour);
        let is_priced = self.caches || spent.read + spent.write() == 0;
        let hour = self.nano_usd.filter(|_| is_priced);
        let hour = hour.map(|nano| nano.write_1h.or((spent.write_1h == 0).then_some(0)));
        match (self.nano_usd, hour.flatten()) {
            (Some(nano), Some(hour)) => Cost { nano_usd: sum(spent, &nano, hour), units, unpriced_tokens: 0 },
            _ => Cost { nano_usd: 0, units, unpriced_tokens: spent.prompt() + spent.output },
        }
    }
}

/// All rates of a price table: what is known of a request needs to name its own only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NumberedRates(Arc<[Rates]>);

impl NumberedRates {
    /// Those with a number of [`Tariff::number`].
    pub fn of(&self, number: u32) -> &Rates {
        self.0.get(number as usize).unwrap_or(&Rates::USUAL)
    }
}

fn sum(spent: &Spent, rates: &PerToken, write_1h: u64) -> u128 {
    let parts = [
        (spent.uncached, rates.input),
        (spent.write_5m, rates.write_5m),
        (spent.write_1h, write_1h),
        (spent.read, rates.read),
        (spent.output, rates.output),
    ];
    parts.iter().map(|&(tokens, rate)| u128::from(tokens) * u128::from(rate)).sum()
}

/// The price table.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// By model, in the spelling of [`model_id::normalise`].
    rows: BTreeMap<String, Vec<DatedRates>>,
    /// Those of all rows.
    rates: NumberedRates,
    /// What searching the web costs besides tokens, if that is listed.
    pub web_search: Option<WebSearchPrice>,
    /// The file that it was read from, as it is cited.
    pub place: String,
}

#[derive(Clone, Debug)]
struct DatedRates {
    /// First millisecond.
    from: Millis,
    /// First millisecond after it.
    until: Millis,
    /// Prompts of more tokens than this, up to and including `up_to`.
    above: u64,
    up_to: u64,
    rates: Rates,
    /// Their place in [`Prices::rates`].
    number: u32,
}

impl DatedRates {
    fn holds(&self, at: Millis) -> bool {
        self.from <= at && at < self.until
    }

    /// Whether both hold for some prompt at some time.
    fn clashes(&self, other: &Self) -> bool {
        let in_time = self.from < other.until && other.from < self.until;
        in_time && self.above < other.up_to && other.above < self.up_to
    }
}

#[derive(Deserialize)]
struct PriceList {
    price: Vec<Entry>,
    web_search: Option<WebSearchPrice>,
}

/// `[web_search]`: what searches cost besides their tokens.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct WebSearchPrice {
    pub tools: Vec<String>,
    /// Dollars of a thousand searches.
    pub usd_per_1000: f64,
    /// Where the price comes from.
    pub source: String,
}

impl WebSearchPrice {
    /// Nano-dollars of so many searches.
    pub fn nano_usd(&self, searches: u64) -> u64 {
        (searches as f64 * self.usd_per_1000 * 1e6).round() as u64
    }
}

/// A row as written: dollars per million tokens, days inclusive.
#[derive(Deserialize)]
struct Entry {
    models: Vec<String>,
    from: Option<String>,
    to: Option<String>,
    prompt_above: Option<u64>,
    prompt_up_to: Option<u64>,
    input: f64,
    write_5m: Option<f64>,
    write_1h: Option<f64>,
    read: Option<f64>,
    output: f64,
    #[expect(dead_code, reason = "says where the row comes from, for readers of the file")]
    source: String,
}

/// A row with its place, before it is known which row its units refer to.
struct Listed {
    place: String,
    nano: PerToken,
    /// With the usual units.
    row: DatedRates,
}

impl Prices {
    /// Reads a table; `place` is where it stands, for messages. An error if it is no table of prices, two rows hold for
    /// one model, day and length of prompt, or a rate is no whole number of nano-dollars or of 1/200 of the input rate.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let table: PriceList = fitting(text, place)?;
        let lines = toml_edit::Document::parse(text).map_or_else(|_| Vec::new(), |document| lines_of(&document, text));
        let mut by_model: BTreeMap<String, Vec<Listed>> = BTreeMap::new();
        for (index, entry) in table.price.iter().enumerate() {
            let place = format!("{place}:{}", lines.get(index).copied().unwrap_or_default());
            if entry.models.is_empty() {
                return Err(Error::failed(format!("{place}: a price of no model")).hint("name one in `models`"));
            }
            for model in &entry.models {
                by_model.entry(model.clone()).or_default().push(Listed::new(entry, place.clone())?);
            }
        }
        let rows = by_model.into_iter().map(|(model, listed)| Ok((model.clone(), settled(&model, &listed)?)));
        let mut rows: BTreeMap<String, Vec<DatedRates>> = rows.collect::<Result<_>>()?;
        (0..).zip(rows.values_mut().flatten()).for_each(|(number, row)| row.number = number);
        let rates = NumberedRates(rows.values().flatten().map(|row| row.rates).collect());
        Ok(Self { rows, rates, web_search: table.web_search, place: place.to_owned() })
    }

    /// What a model charges; none if the table does not say. A request without a time is priced as of the latest row.
    pub fn rates(&self, model: &str, at: Millis, prompt_tokens: u64) -> Option<Rates> {
        pick(self.rows_of(model)?, at, prompt_tokens).map(|row| row.rates)
    }

    /// The models of the table.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str)
    }

    fn rows_of(&self, model: &str) -> Option<&Vec<DatedRates>> {
        // Fast mode has prices of its own, or none: never those of the same model.
        let plain = || match model.strip_suffix(FAST) {
            Some(standard) => model_id::normalise(standard) + FAST,
            None => model_id::normalise(model),
        };
        self.rows.get(model).or_else(|| self.rows.get(&plain()))
    }
}

fn pick(rows: &[DatedRates], at: Millis, prompt_tokens: u64) -> Option<&DatedRates> {
    let mut fitting = rows.iter().filter(|row| row.above < prompt_tokens.max(1) && prompt_tokens <= row.up_to);
    if at == NO_TIME { fitting.max_by_key(|row| row.from) } else { fitting.find(|row| row.holds(at)) }
}

/// Line numbers of the tables `[[price]]`.
fn lines_of(document: &toml_edit::Document<&str>, text: &str) -> Vec<usize> {
    let tables = document.get("price").and_then(|item| item.as_array_of_tables());
    let starts = tables.into_iter().flatten().filter_map(|table| table.span());
    starts.map(|span| 1 + text[..span.start].matches('\n').count()).collect()
}

impl Listed {
    fn new(entry: &Entry, place: String) -> Result<Self> {
        let from = entry.from.as_ref().map_or(Ok(Millis::MIN), |day| midnight(day, 0, &place))?;
        let until = entry.to.as_ref().map_or(Ok(Millis::MAX), |day| midnight(day, 1, &place))?;
        let (above, up_to) = (entry.prompt_above.unwrap_or(0), entry.prompt_up_to.unwrap_or(u64::MAX));
        if from >= until || above >= up_to {
            return Err(
                Error::failed(format!("{place}: the row holds never")).hint("`from` and `to` are days inclusive")
            );
        }
        let caches = entry.read.is_some();
        if entry.write_5m.is_some() != caches || entry.write_1h.is_some() && !caches {
            return Err(Error::failed(format!("{place}: some rates of the cache are missing"))
                .hint("leave `write_5m`, `write_1h` and `read` out together, or `write_1h` alone"));
        }
        let nano = |name: &str, usd: f64| nano_of(usd).ok_or_else(|| odd(&place, name, usd));
        let nano = PerToken {
            input: nano("input", entry.input)?,
            write_5m: nano("write_5m", entry.write_5m.unwrap_or_default())?,
            write_1h: entry.write_1h.map(|usd| nano("write_1h", usd)).transpose()?,
            read: nano("read", entry.read.unwrap_or_default())?,
            output: nano("output", entry.output)?,
        };
        if nano.input == 0 {
            return Err(Error::failed(format!("{place}: an input price of 0 measures nothing")));
        }
        let rates = Rates { nano_usd: Some(nano), caches, ..Rates::USUAL };
        Ok(Self { place, nano, row: DatedRates { from, until, above, up_to, rates, number: 0 } })
    }
}

fn odd(place: &str, name: &str, usd: f64) -> Error {
    Error::failed(format!("{place}: `{name} = {usd}` is no whole number of nano-dollars per token"))
        .hint("prices are dollars per million tokens with at most three decimals")
}

fn nano_of(usd: f64) -> Option<u64> {
    let nano = usd * NANO_PER_LISTED_USD;
    // Decimals are not exact in binary; a millionth of a nano-dollar is far below any listed price.
    let is_lost = usd != 0.0 && nano.round() == 0.0;
    let whole = !is_lost && (nano - nano.round()).abs() < 1e-6 && (0.0..1e15).contains(&nano);
    whole.then_some(nano.round() as u64)
}

/// Midnight (UTC) of a day, or of one after it.
fn midnight(day: &str, days_later: i64, place: &str) -> Result<Millis> {
    let fault = || Error::failed(format!("{place}: `{day}` is no day")).hint("write a date as 2026-10-07");
    let date: Date = day.parse().ok().filter(|date: &Date| date.to_string() == day).ok_or_else(fault)?;
    let start = date.to_zoned(TimeZone::UTC).map_err(|_| fault())?;
    Ok(start.timestamp().as_millisecond() + days_later * DAY_MS)
}

/// Rows of one model with their units, once it is sure that no two of them hold together.
fn settled(model: &str, listed: &[Listed]) -> Result<Vec<DatedRates>> {
    let mut rows: Vec<DatedRates> = Vec::new();
    for Listed { place, nano, row } in listed {
        if let Some(other) = rows.iter().position(|other| other.clashes(row)) {
            let message = format!("{place}: a price of {model} that holds together with {}", listed[other].place);
            return Err(Error::failed(message).hint("`to` is the last day of a price, `from` the first"));
        }
        let short = listed.iter().find(|base| base.row.above == 0 && base.row.holds(row.from));
        let units = units_of(nano, short.map_or(nano.input, |short| short.nano.input), place)?;
        // Tokens of a cache that has no price count at the usual ratios.
        let usual = PerToken { input: units.input, output: units.output, ..Rates::USUAL.units };
        let units = if row.rates.caches { units } else { usual };
        rows.push(DatedRates { rates: Rates { units, ..row.rates }, ..row.clone() });
    }
    Ok(rows)
}

fn units_of(nano: &PerToken, input: u64, place: &str) -> Result<PerToken> {
    let unit = |rate: u64| {
        let scaled = rate * UNITS_PER_TOKEN;
        scaled.is_multiple_of(input).then_some(scaled / input).ok_or_else(|| {
            Error::failed(format!("{place}: a rate of {rate} is no multiple of 1/200 of the input rate {input}"))
                .hint("rates here are nano-dollars per token; every published one is such a multiple")
        })
    };
    Ok(PerToken {
        input: unit(nano.input)?,
        write_5m: unit(nano.write_5m)?,
        write_1h: nano.write_1h.map(unit).transpose()?,
        read: unit(nano.read)?,
        output: unit(nano.output)?,
    })
}

/// The price table as one timeline needs it: by symbol.
#[derive(Clone, Debug)]
pub struct Tariff<'a> {
    by_model: Vec<&'a [DatedRates]>,
    /// The rates of all models.
    pub all: &'a NumberedRates,
}

impl<'a> Tariff<'a> {
    /// Looks every name up once.
    pub fn new(prices: &'a Prices, names: &Names) -> Self {
        let rows = |text: &String| prices.rows_of(text).map_or(&[][..], Vec::as_slice);
        Self { by_model: names.texts().iter().map(rows).collect(), all: &prices.rates }
    }

    /// What a request is charged.
    pub fn rates(&self, model: Sym, at: Millis, prompt_tokens: u64) -> Rates {
        *self.all.of(self.number(model, at, prompt_tokens))
    }

    /// The number of these rates; `u32::MAX` stands for the usual ones.
    pub fn number(&self, model: Sym, at: Millis, prompt_tokens: u64) -> u32 {
        pick(self.by_model[model.0 as usize], at, prompt_tokens).map_or(u32::MAX, |row| row.number)
    }

    /// Price of a request if it had these tokens.
    pub fn of(&self, request: &Request, spent: &Spent) -> Cost {
        self.cost(request.model, request.start, spent)
    }

    /// Price of so many tokens that a model was asked with at a time.
    pub fn cost(&self, model: Sym, at: Millis, spent: &Spent) -> Cost {
        self.rates(model, at, spent.prompt()).cost(spent)
    }

    /// Price of a call that belongs to a request to `model`, but may ask another one. Its units are those of `model`: its
    /// money over that model's price of an input token, to the nearest unit. Where either has no price, the tokens count at
    /// the usual ratios.
    pub fn cost_of_call(&self, model: Sym, asked: Option<Sym>, at: Millis, spent: &Spent) -> Cost {
        let Some(asked) = asked.filter(|asked| *asked != model) else { return self.cost(model, at, spent) };
        let cost = self.cost(asked, at, spent);
        match self.rates(model, at, 1).nano_usd {
            Some(own) if cost.unpriced_tokens == 0 => {
                let input = u128::from(own.input);
                Cost { units: (cost.nano_usd * u128::from(UNITS_PER_TOKEN) + input / 2) / input, ..cost }
            }
            _ => cost,
        }
    }
}

/// Models of a timeline that have requests without a price, by name, with the number of these requests.
pub fn unpriced_models<'a>(timeline: &'a Timeline, prices: &Prices) -> BTreeMap<&'a str, u64> {
    let tariff = Tariff::new(prices, &timeline.names);
    let asked = timeline.billed().map(|(_, request)| request);
    // A model may have a price, and none for a lifetime or a size of context.
    let is_unpriced = |request: &&Request| {
        let spent = Spent { output: request.usage().output, ..bill::spent(request, CacheLifetime::FiveMinutes) };
        tariff.of(request, &spent).unpriced_tokens > 0
    };
    let mut unpriced = BTreeMap::new();
    for request in asked.filter(is_unpriced) {
        *unpriced.entry(timeline.names.text(request.model)).or_default() += 1;
    }
    unpriced
}
