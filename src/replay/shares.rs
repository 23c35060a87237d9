//! Effects of changes that are made together, as shares of the whole that they have together.
//!
//! Alone, each of several changes may do what one of them suffices for, and added up they would promise it several times.
//! A share is the mean of what a change does alone and what it does as the last one; for two changes that is the Shapley
//! value. What is then left of the whole goes to each by how far the two are apart, so that a change that shares nothing
//! with others keeps its effect, and all shares add up.

use std::collections::BTreeMap;

/// Tokens saved more, by session; sessions without a difference may be left out.
pub type BySession = BTreeMap<u32, f64>;

/// Everything of it.
pub fn total(effect: &BySession) -> f64 {
    effect.values().sum()
}

/// The shares of changes in `whole`, by what each does alone and as the last one.
pub fn shares(alone: &[BySession], last: &[BySession], whole: &BySession) -> Vec<BySession> {
    let means: Vec<BySession> = alone.iter().zip(last).map(|(alone, last)| combined(alone, last, 0.5, 0.5)).collect();
    let apart: Vec<f64> = alone.iter().zip(last).map(|(alone, last)| (total(alone) - total(last)).abs()).collect();
    let all_apart: f64 = apart.iter().sum();
    let left = means.iter().fold(whole.clone(), |left, mean| combined(&left, mean, 1.0, -1.0));
    let part = |apart: f64| if all_apart > 0.0 { apart / all_apart } else { 1.0 / means.len() as f64 };
    means.iter().zip(&apart).map(|(mean, &apart)| combined(mean, &left, 1.0, part(apart))).collect()
}

/// A weighted sum of two effects.
fn combined(a: &BySession, b: &BySession, weight_a: f64, weight_b: f64) -> BySession {
    let mut sum: BySession = a.iter().map(|(&session, effect)| (session, weight_a * effect)).collect();
    b.iter().for_each(|(&session, effect)| *sum.entry(session).or_default() += weight_b * effect);
    sum
}
