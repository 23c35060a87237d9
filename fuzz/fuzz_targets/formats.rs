//! Any text as a body: whatever an encoder writes must read back as what the body says, and any text may be handed to any
//! decoder.
#![no_main]

use devboy::readers::encode::{self, EncodeAttempt, Params, Subject};
use devboy::readers::shape;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let subject = Subject::new(text, shape::classify(text.as_bytes()));
    for format in encode::REGISTER {
        let params = Params { recursion_depth: 5, numbered_every: 10 };
        assert!(encode::attempt(format, &subject, params) != EncodeAttempt::Unproven, "{} does not read back", format.id);
        let _any = (format.decode)(text);
    }
});
