//! `builtin primes up_to=N`: a computing process without system calls.
//!
//! Counts the primes up to N by trial division: each odd number is divided by the primes up to its square
//! root until one fits. The table of those primes is made first (4 KiB for N = 20 million, so that it stays in the
//! first-level cache); from then on the loop touches no other memory and calls no system. What it costs is integer
//! division and branches; the only way it gets slower from outside is to lose the CPU, its frequency or its cache.

use super::WorkloadError;
use serde_json::{Value, json};

/// Runs it: `up_to`, 2 to 4 294 967 295, is the only argument.
pub(super) fn run(arguments: &[(String, String)]) -> Result<Value, WorkloadError> {
    let mut up_to = None;
    for (key, value) in arguments {
        match key.as_str() {
            "up_to" => up_to = Some(read_limit(value)?),
            _ => return Err(WorkloadError::UnknownArgument { workload: "primes", argument: key.clone() }),
        }
    }
    let up_to = up_to.ok_or(WorkloadError::MissingArgument { workload: "primes", argument: "up_to" })?;
    Ok(json!({ "count": count(up_to) }))
}

fn read_limit(text: &str) -> Result<u32, WorkloadError> {
    let number = text.replace('_', "").parse().ok().filter(|number| *number >= 2);
    number.ok_or_else(|| WorkloadError::BadArgument {
        argument: "up_to",
        value: text.to_owned(),
        expected: "a number from 2 to 4294967295",
    })
}

/// How many primes there are up to `limit`.
pub fn count(limit: u32) -> u64 {
    if limit < 2 {
        return 0;
    }
    let table = odd_primes_up_to(limit.isqrt());
    let odd_primes = (3..=limit).step_by(2).filter(|number| is_prime(*number, &table)).count();
    odd_primes as u64 + 1
}

fn odd_primes_up_to(limit: u32) -> Vec<u32> {
    let mut table: Vec<u32> = Vec::new();
    for number in (3..=limit).step_by(2) {
        if is_prime(number, &table) {
            table.push(number);
        }
    }
    table
}

/// `number` is odd; `table` holds the odd primes up to its root, or more.
fn is_prime(number: u32, table: &[u32]) -> bool {
    for prime in table {
        if u64::from(*prime) * u64::from(*prime) > u64::from(number) {
            return true;
        }
        if number.is_multiple_of(*prime) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_the_tables_say() {
        // https://oeis.org/A006880 and small cases around squares of primes
        for (limit, primes) in [(0, 0), (1, 0), (2, 1), (3, 2), (8, 4), (9, 4), (10, 4), (25, 9), (1_000_000, 78_498)] {
            assert_eq!(count(limit), primes, "up to {limit}");
        }
    }

    #[test]
    fn limits_that_are_none_are_refused() {
        for text in ["", "1", "-5", "4294967296", "1e6", "many"] {
            assert!(read_limit(text).is_err(), "{text}");
        }
        assert_eq!(read_limit("20_000_000").unwrap(), 20_000_000);
    }
}
