//! Any text as `pipeline_config.toml`: an error or a file, never a panic.
#![no_main]

use std::path::Path;

use devboy::readers::{Effective, SettingsFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(file) = SettingsFile::parse(Path::new("pipeline_config.toml"), text) {
        let _either = Effective::resolve(&file);
    }
});
