//! hackbench's `Time:` line, as rt-tests print it.

use super::{Output, Parsed, amount, only_line, quote};

/// Seconds all groups took.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let said = output.stdout.lines().chain(output.stderr.lines());
    if let Some(line) = said.clone().find(|line| is_failure(line)) {
        return Err(format!("hackbench reports an error: {}", quote(line)));
    }
    let line = only_line(&output.stdout, "line `Time: …`", |line| line.trim_start().starts_with("Time:"))?;
    let mut parsed = Parsed::default();
    parsed.take("time", amount(line.trim_start_matches("Time:"), line));
    Ok(parsed)
}

/// `barf()` in `hackbench.c` prints what failed and the error's name, as in `fork(): Resource temporarily unavailable`
/// or `SENDER: write: Broken pipe`; it may be followed by a time.
fn is_failure(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("SENDER:") || line.contains("fork()") || line.contains("pthread_create failed")
}
