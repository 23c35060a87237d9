//! Which results are cleared: oldest first until what remains is small enough, and only if that frees enough at once.

/// A result in a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultSize {
    /// The client's estimate of its tokens as it stands there now.
    pub tokens: u64,
    /// The same once it is cleared.
    pub cleared_tokens: u64,
    /// Whether it may be cleared.
    pub is_free: bool,
}

/// Indices of the results to clear, oldest first; empty if clearing is not worth it. `results` are all of a context,
/// oldest first.
pub fn plan(results: &[ResultSize], target_tokens: u64, min_saving_tokens: u64) -> Vec<usize> {
    let mut remaining: u64 = results.iter().map(|result| result.tokens).sum();
    let mut saved = 0;
    let mut chosen = Vec::new();
    for (index, result) in results.iter().enumerate() {
        if remaining <= target_tokens {
            break;
        }
        let saving = result.tokens.saturating_sub(result.cleared_tokens);
        if !result.is_free || saving == 0 {
            continue;
        }
        remaining -= saving;
        saved += saving;
        chosen.push(index);
    }
    if saved < min_saving_tokens { Vec::new() } else { chosen }
}
