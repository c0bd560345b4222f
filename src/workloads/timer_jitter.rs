//! `builtin timer_jitter period=P for=T`: how late a periodic wake-up is.
//!
//! One thread sleeps in `clock_nanosleep(2)` until absolute times on `CLOCK_MONOTONIC`, a period apart, and reads the
//! clock when it is back. Each due time counts, those that passed while the thread was kept away as well: a stall of five
//! periods makes five wake-ups late, not one. Timer slack, 50 us by default for tasks that are not real-time, is set to
//! 1 ns: it is the kernel's right to wake a task later, and not what is measured. Real-time priority is the caller's to
//! give (`fifo`).

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl::set_timerslack;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use serde_json::{Value, json};

use super::WorkloadError;
use super::arguments::{Arguments, bad, time};
use super::latency::Latency;

/// Wake-ups before the first that counts: the code and the histogram come into memory.
const UNCOUNTED: u64 = 10;

/// Runs it: `period` and `for`.
pub(super) fn run(given: &[(String, String)]) -> Result<Value, WorkloadError> {
    let mut arguments = Arguments::new("timer_jitter", given);
    let period = arguments.read("period", "1ms", time)?;
    let limit = arguments.read("for", "5s", time)?;
    arguments.end()?;
    let wakeups = (limit.as_nanos() / period.as_nanos()) as u64;
    if period < Duration::from_micros(10) {
        return Err(bad("period", &format!("{}ns", period.as_nanos()), "10us or more"));
    }
    if wakeups == 0 {
        return Err(bad("for", &format!("{}ms", limit.as_millis()), "one period or more"));
    }
    let lateness = wake_up(period, wakeups).map_err(|error| WorkloadError::Kernel {
        what: "sleeping until a time",
        advice: None,
        source: error.into(),
    })?;
    Ok(json!({
        "mean": lateness.mean_us(),
        "p50": lateness.quantile_us(0.5),
        "p99": lateness.quantile_us(0.99),
        "max": lateness.longest_us(),
        "wakeups": lateness.len(),
    }))
}

fn wake_up(period: Duration, wakeups: u64) -> nix::Result<Latency> {
    let clock = ClockId::CLOCK_MONOTONIC;
    let mut lateness = Latency::default();
    set_timerslack(1)?;
    let mut due = clock_gettime(clock)?;
    let step = TimeSpec::from_duration(period);
    for number in 0..UNCOUNTED + wakeups {
        due = due + step;
        while let Err(error) = clock_nanosleep(clock, ClockNanosleepFlags::TIMER_ABSTIME, &due) {
            if error != Errno::EINTR {
                return Err(error);
            }
        }
        let late = clock_gettime(clock)? - due;
        if number >= UNCOUNTED {
            // Never negative: the kernel does not wake before the time.
            lateness.record(Duration::from_nanos(late.num_nanoseconds().unsigned_abs()));
        }
    }
    Ok(lateness)
}
