//! The binary: hands the process's streams, environment and clock to [`devboy::cli`].

use std::io::{BufWriter, IsTerminal, stderr, stdin, stdout};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use devboy::{Context, Env, Pseudonyms, cli};

fn main() -> ExitCode {
    devboy::give_memory_back();
    let env = Env::from_process();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (out_is_terminal, err_is_terminal) = (stdout().is_terminal(), stderr().is_terminal());
    let mut context = Context {
        out: &mut BufWriter::with_capacity(1 << 16, stdout()),
        err: &mut stderr(),
        input: &mut stdin(),
        env,
        pseudonyms: Pseudonyms::default(),
        now_ms: i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX),
        width: out_is_terminal.then(devboy::terminal_width).flatten(),
        out_is_terminal,
        err_is_terminal,
    };
    ExitCode::from(cli::run(std::env::args_os(), &mut context) as u8)
}
