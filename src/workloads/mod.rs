//! Built-in workloads, and parsers that turn a program's output into numbers. Knows nothing of trials.
//!
//! A built-in workload is a process of its own, `irqlab workload NAME key=value …`, that prints one JSON object:
//! its numbers are metrics, its texts are notes.

use std::io;

pub mod affinity;
mod arguments;
pub mod disk_read;
pub mod ipc;
mod latency;
pub mod net;
pub mod parse;
mod phase;
pub mod primes;
pub mod timer_jitter;

/// A built-in workload that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The value does not fit.
    #[error("`{argument}={value}`: expected {expected}")]
    BadArgument { argument: &'static str, value: String, expected: &'static str },
    /// The disk, or the file on it.
    #[error(transparent)]
    Disk(#[from] disk_read::DiskError),
    /// A kernel service failed or is not there.
    #[error("{what}: {source}{}", advice.map(|advice| format!(" ({advice})")).unwrap_or_default())]
    Kernel { what: &'static str, advice: Option<&'static str>, source: io::Error },
    /// A required argument was not given.
    #[error("`{workload}` needs `{argument}=…`")]
    MissingArgument { workload: &'static str, argument: &'static str },
    /// The network, or what is behind it.
    #[error(transparent)]
    Net(#[from] net::NetError),
    /// Not `key=value`.
    #[error("`{0}` is not `key=value`")]
    NotAnArgument(String),
    /// An argument the workload does not know.
    #[error("`{workload}` has no argument `{argument}`")]
    UnknownArgument { workload: &'static str, argument: String },
    /// A name that is none.
    #[error(
        "there is no built-in workload `{0}`; there are disk_read, ipc, net_stream, net_transact, primes, serve and timer_jitter"
    )]
    UnknownWorkload(String),
}

/// The whole of `irqlab workload NAME key=value …`: prints one JSON object on standard output. 0 when it ran, 1 when
/// it could not, with the reason on standard error.
pub fn run(name: &str, arguments: &[String]) -> i32 {
    let result = split(arguments).and_then(|arguments| match name {
        "disk_read" => disk_read::run(&arguments),
        "ipc" => ipc::run(&arguments),
        "net_stream" => net::stream::run(&arguments),
        "net_transact" => net::transact::run(&arguments),
        "primes" => primes::run(&arguments),
        "serve" => net::serve(&arguments),
        "timer_jitter" => timer_jitter::run(&arguments),
        _ => Err(WorkloadError::UnknownWorkload(name.to_owned())),
    });
    match result {
        Ok(said) => {
            println!("{said}");
            0
        }
        Err(error) => {
            eprintln!("irqlab workload {name}: {error}");
            1
        }
    }
}

fn split(arguments: &[String]) -> Result<Vec<(String, String)>, WorkloadError> {
    let pair = |argument: &String| {
        let pair = argument.split_once('=').ok_or_else(|| WorkloadError::NotAnArgument(argument.clone()))?;
        Ok((pair.0.to_owned(), pair.1.to_owned()))
    };
    arguments.iter().map(pair).collect()
}
