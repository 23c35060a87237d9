//! The threshold model: a published way to compare lifetimes that looks at nothing but the gap before each request. It is
//! coarser than the simulated cache and stands beside it so that its users can reconcile the two.
//!
//! Gaps up to five minutes are warm, up to an hour recoverable, longer ones cold. For five minutes every write has that
//! price, and reads after a recoverable gap become writes. For an hour every write has that price, but one after a
//! recoverable gap is read, and only as much as a warm turn usually writes is written.

use crate::logs::timeline::requests::Request;
use crate::whatif::prompt_cache::outcome::ThresholdModel;
use crate::whatif::prompt_cache::params::Class;
use crate::whatif::sim::bill;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::simulate::Ground;

/// All chains.
pub fn run(ground: &Ground<'_>) -> ThresholdModel {
    let mut model = ThresholdModel::default();
    for chain in &ground.timeline.chains {
        let requests: Vec<u32> = chain.requests.clone().filter(|&index| request(ground, index).context() > 0).collect();
        let warm = |(place, &index): (usize, &u32)| place > 0 && gap(ground, index) == Gap::Warm;
        let warm: Vec<u32> = requests.iter().enumerate().filter(|&pair| warm(pair)).map(|(_, &index)| index).collect();
        let usual = median(warm.iter().map(|&index| request(ground, index).usage.cache_creation).collect());
        for (place, &index) in requests.iter().enumerate() {
            let gap = if place == 0 { Gap::Cold } else { gap(ground, index) };
            charge(ground, index, gap, usual, &mut model);
        }
    }
    model
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Warm,
    Recoverable,
    Cold,
}

fn request<'a>(ground: &Ground<'a>, index: u32) -> &'a Request {
    &ground.timeline.requests[index as usize]
}

fn gap(ground: &Ground<'_>, index: u32) -> Gap {
    match ground.priors[index as usize].idle {
        idle if idle <= Class::FiveMinutes.millis() => Gap::Warm,
        idle if idle <= Class::Hour.millis() => Gap::Recoverable,
        _ => Gap::Cold,
    }
}

/// The lower median; none of nothing.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

fn charge(ground: &Ground<'_>, index: u32, gap: Gap, usual: Option<u64>, model: &mut ThresholdModel) {
    let request = request(ground, index);
    let billed = Spent { uncached: 0, ..bill::spent(request, ground.oracle.cache.class_unknown) };
    let (created, read) = (billed.write(), billed.read);
    let recoverable = gap == Gap::Recoverable;
    let five = match recoverable {
        true => Spent { write_5m: created + read, ..Spent::default() },
        false => Spent { write_5m: created, read, ..Spent::default() },
    };
    let hour = match recoverable {
        true => Spent { write_1h: usual.unwrap_or(created).min(created), read: created + read, ..Spent::default() },
        false => Spent { write_1h: created, read, ..Spent::default() },
    };
    let cost =
        |spent: &Spent| -> Cost { ground.tariff.rates(request.model, request.start, request.context()).cost(spent) };
    model.actual += cost(&billed);
    model.five_minutes += cost(&five);
    model.hour += cost(&hour);
    model.written += created;
    model.recoverable += if recoverable { created } else { 0 };
}
