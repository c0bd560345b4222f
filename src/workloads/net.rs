//! `builtin net_stream`, `builtin net_transact`, and `irqlab workload serve`, the far end of both. Opens sockets and
//! nothing else; settings of the network are none of its business.
//!
//! The far end is threads of the same process where it is on this host (another network namespace, or loopback): it
//! cannot outlive the workload, and its CPU time and CPUs are the workload's. Elsewhere somebody starts
//! `irqlab workload serve`. Both speak the protocol of `wire`.
//!
//! Each connection has a thread at each end that sleeps in the kernel until there is something for it, as a process
//! per client of a file server does: nobody spins, and a message costs the wake-up it costs there.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

mod far;
mod flow;
mod serve;
pub(super) mod stream;
pub(super) mod transact;
mod wire;

pub(super) use serve::run as serve;

/// How long the far end may say nothing before it counts as gone.
const SILENCE: Duration = Duration::from_secs(10);

/// Largest message, bytes.
const MAX_MESSAGE: u64 = 16 << 20;

/// Largest payload of a UDP datagram over IPv4, bytes.
const MAX_DATAGRAM: usize = 65_507;

/// What `size=` may be.
const MESSAGE: &str = "a size from `8B` to `16MiB`";

/// Lifts this process's limit of open files as far as it may, and tells whether `needed` fit below it: the usual 1024
/// are spent by 500 connections of a process with itself.
fn allow_descriptors(needed: u64) -> Result<(), NetError> {
    // A limit that cannot be read or lifted is met when it is met.
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    let limit = if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft };
    if needed <= limit { Ok(()) } else { Err(NetError::Descriptors { needed, limit }) }
}

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
}

/// Enough for threads that only read and write.
const STACK: usize = 256 << 10;

/// Why bytes do not flow.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The socket could not be connected.
    #[error(
        "nobody answers at {address}: {source}; is `irqlab workload serve listen={address}` running there, and does a \
         firewall let it through?"
    )]
    Connect { address: SocketAddr, source: io::Error },
    /// The far end closed the connection, or its kernel did.
    #[error("the far end {address} went away before the time was up: {source}")]
    Gone { address: SocketAddr, source: io::Error },
    /// The limit of open files is below what the connections asked for need.
    #[error(
        "{needed} file descriptors are needed and {limit} allowed: raise `ulimit -n`, or ask for fewer connections"
    )]
    Descriptors { needed: u64, limit: u64 },
    /// Cannot listen.
    #[error("cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The namespace is not there or may not be entered.
    #[error("cannot enter the network namespace `{name}`: {source}{}", advice(name))]
    Namespace { name: String, source: io::Error },
    /// The name says nothing to the resolver.
    #[error("there is no host `{host}`: {source}")]
    NoHost { host: String, source: io::Error },
    /// Two namespaces without a wire between them.
    #[error(
        "no address of the network namespace `{name}` is in the subnet of an address of this one; give both ends of \
         the wire an address of one subnet, and bring both up"
    )]
    NoSharedSubnet { name: String },
    /// Something else than irqlab, or than this version of it.
    #[error("what listens at {address} is not `irqlab workload serve` of this version, or is just ending")]
    NotOurs { address: SocketAddr },
    /// Nothing was received in the measured time: too short to measure, or stalled.
    #[error("nothing arrived in the {seconds:.3} s that were measured: a longer `for=`, or a far end that hangs")]
    Nothing { seconds: f64 },
    /// The far end is connected and does not answer.
    #[error("the far end {address} was silent for {} s", SILENCE.as_secs())]
    Silent { address: SocketAddr },
    /// No thread for a connection.
    #[error("cannot start thread {number}: {source}")]
    Thread { number: usize, source: io::Error },
}

fn advice(name: &str) -> &'static str {
    if name == far::LAB_NAMESPACE { " (`to lab.host` needs a lab with `link`)" } else { "" }
}

impl NetError {
    /// What an error on the connection to `address` means.
    fn of(address: SocketAddr) -> impl Fn(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => NetError::Silent { address },
            _ => NetError::Gone { address, source },
        }
    }
}

/// Sleeps for `time`, or until a thread has failed.
fn sleep_unless_failed<T>(said: &Receiver<Result<T, NetError>>, time: Duration) -> Result<(), NetError> {
    match said.recv_timeout(time) {
        Ok(Err(error)) => Err(error),
        Ok(Ok(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
    }
}

/// Starts a thread with a small stack that is left alone.
fn start_thread(number: usize, work: impl FnOnce() + Send + 'static) -> Result<(), NetError> {
    let builder = thread::Builder::new().stack_size(STACK);
    builder.spawn(work).map(drop).map_err(|source| NetError::Thread { number, source })
}

fn peer(stream: &TcpStream) -> SocketAddr {
    stream.peer_addr().unwrap_or(SocketAddr::new(IpAddr::from([0; 4]), 0))
}

/// A message size.
fn message(text: &str) -> Result<usize, &'static str> {
    let size = super::arguments::bytes(text).map_err(|_| MESSAGE)?;
    if (wire::REQUEST as u64..=MAX_MESSAGE).contains(&size) { Ok(size as usize) } else { Err(MESSAGE) }
}

/// `protocol`, and whether `size` fits into it.
fn protocol(arguments: &mut super::arguments::Arguments<'_>, size: usize) -> Result<Protocol, super::WorkloadError> {
    let protocols = [("tcp", Protocol::Tcp), ("udp", Protocol::Udp)];
    let protocol = arguments.choice("protocol", &protocols, "tcp or udp")?;
    if protocol == Protocol::Udp && size > MAX_DATAGRAM {
        return Err(super::arguments::bad("size", &format!("{size}B"), "at most `65507B` with `protocol=udp`"));
    }
    Ok(protocol)
}
