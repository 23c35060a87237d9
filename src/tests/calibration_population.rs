//! What the calibration is about: text without thinking. Thinking that the log shortens or leaves out, and reminders that it shows
//! in no block, do not move the ratio.

use proptest::prelude::*;

use crate::base::bootstrap::below;
use crate::logs::timeline::requests::{Marks, Timeline};
use crate::rules::p4_tokenizer::rounded;
use crate::tests::log_builder::cases;
use crate::tests::timeline_builder::Story;
use crate::whatif::calibration::Ratio;
use crate::whatif::calibration::calibrate;
use crate::whatif::sim::sizes::SizeRules;

/// Bytes per token of the text, in truth.
const TRUTH: f64 = 2.4;

/// Sessions with so many requests each; some in a hundred of them think, are reminded.
fn logs(seed: u64, thinking: usize, reminded: usize) -> Timeline {
    let mut state = seed;
    let mut pick = move |below_this: usize| below(below_this, &mut state);
    let mut log = Story::new();
    for session in 0..20 {
        log.session(&format!("s{session}"), "/p").human(40).ask(0, 20_000, 3);
        let mut read = 20_000;
        for _ in 0..30 {
            let chars = 200 + pick(6_000) as u32;
            let thinks = pick(100) < thinking;
            let is_reminded = pick(100) < reminded;
            // What was thought is billed in full; a third of it is shown, or nothing.
            let thought = if thinks { 300 + pick(2_000) as u64 } else { 0 };
            if thinks {
                log.thinks(if pick(2) == 0 { 0 } else { thought as u32 });
            }
            if is_reminded {
                log.mark(Marks::ATTACHED);
            }
            let reminder = if is_reminded { 800 } else { 0 };
            // 55 tokens of a call, 30 of a result, 18 of an increment.
            let grown = (f64::from(chars) / TRUTH) as u64 + thought + reminder + 103;
            log.calls("Bash", "", 0).wait(1).result(chars).ask(read, grown - 3, 3);
            read += grown - 3;
        }
    }
    log.done()
}

fn measured(timeline: &Timeline) -> Ratio {
    let found = calibrate(timeline, SizeRules::shipped());
    let [family] = found.families.as_slice() else { panic!("one model: {:?}", found.families) };
    family.bytes_per_token
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn thinking_and_reminders_do_not_move_the_ratio(seed in any::<u64>(), thinking in 0_usize..70, reminded in 0_usize..30) {
        let ratio = measured(&logs(seed, thinking, reminded));
        prop_assert!((ratio.value / TRUTH - 1.0).abs() < 0.005, "{ratio:?}");
    }

    #[test]
    fn what_is_written_lies_in_the_interval(value in 1.0_f64..5.0, half in 0.000_2_f64..0.2, decimals in 0_u8..3) {
        let within = value - half..=value + half;
        prop_assert!(within.contains(&rounded(value, decimals, within.clone())));
    }
}

#[test]
fn a_value_has_no_more_decimals_than_it_needs() {
    assert!((rounded(2.3456, 2, 2.3..=2.4) - 2.35).abs() < 1e-12);
    assert!((rounded(2.3456, 2, 2.345..=2.346) - 2.346).abs() < 1e-12);
}
