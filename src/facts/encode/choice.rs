//! One body written in every format, and which text is chosen.

use super::{EncodeAttempt, Format, FormatFamily, Params, REGISTER, attempt};
use crate::base::body_shape::{KeptLines, Showing};
use crate::facts::quotable::Quotable;
use crate::facts::subject::Subject;
use crate::facts::tokens::Counter;

/// One way to write the body.
pub struct EncodingChoice {
    /// The format.
    pub id: &'static str,
    /// Who knows it.
    pub family: FormatFamily,
    /// What came of it.
    pub outcome: EncodeAttempt,
    /// What the text costs.
    pub tokens: Option<u64>,
    /// What can be quoted from it.
    pub kept: KeptLines,
    /// Whether that is enough for this body.
    pub is_quotable: bool,
}

impl EncodingChoice {
    /// The text, if it is proven.
    pub fn text(&self) -> Option<&str> {
        if let EncodeAttempt::Proven(text) = &self.outcome { Some(text) } else { None }
    }

    /// What came of it, in words.
    pub fn state(&self) -> &'static str {
        match (&self.outcome, self.family) {
            (EncodeAttempt::Refused, _) => "does not apply",
            (EncodeAttempt::Unproven, _) => "does not give the body back: not used",
            (EncodeAttempt::Proven(_), _) if !self.is_quotable => "proven, but not quotable: not used",
            (EncodeAttempt::Proven(_), FormatFamily::Baseline) => "proven (a baseline, never chosen)",
            (EncodeAttempt::Proven(_), FormatFamily::Extended) => "proven (extended)",
            (EncodeAttempt::Proven(_), FormatFamily::Published) => "proven",
        }
    }
}

/// The body in every format, of which so much can be quoted and has to be.
pub fn candidates(
    subject: &Subject<'_>,
    params: Params,
    (quotable, showing): (&Quotable<'_>, Showing),
    counter: &mut Counter,
) -> Vec<EncodingChoice> {
    let candidate = |format: &Format| {
        let outcome = attempt(format, subject, params);
        let (tokens, kept) = match &outcome {
            EncodeAttempt::Proven(text) => (Some(counter.count(text)), quotable.kept(text)),
            EncodeAttempt::Refused | EncodeAttempt::Unproven => (None, KeptLines::Nothing),
        };
        let is_quotable = kept.suits(showing);
        EncodingChoice { id: format.id, family: format.family, outcome, tokens, kept, is_quotable }
    };
    REGISTER.iter().map(candidate).collect()
}

/// The cheapest that may be chosen; none if the body as it is costs no more.
pub fn winner(candidates: &[EncodingChoice], extended: bool, baseline: u64) -> Option<&EncodingChoice> {
    let allowed = candidates.iter().filter(|candidate| candidate.family.is_allowed(extended) && candidate.is_quotable);
    let cheaper = allowed.filter(|candidate| candidate.tokens.is_some_and(|t| t < baseline));
    cheaper.min_by_key(|candidate| candidate.tokens)
}
