//! `builtin net_stream`: bytes in one direction over N connections for a time; the metric is what the receiver got. With
//! UDP, what it did not get as well.
//!
//! The receiver's own clock and counters are read before and after the measured time, so that what lies in buffers on
//! the way is not counted, and neither are connecting and the first 300 ms.

use std::net::{TcpStream, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::far::Far;
use super::wire::{Counter, Greeting, Kind, REQUEST, Reading};
use super::{NetError, Protocol, flow, message, peer, protocol, serve, sleep_unless_failed, start_thread};
use crate::workloads::WorkloadError;
use crate::workloads::arguments::{Arguments, count, time};
use crate::workloads::phase::{Phase, WARM_UP};

/// What a receiver of datagrams says to open the way.
const HELLO: [u8; REQUEST] = [0; REQUEST];

/// Which way the bytes go, seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Receive,
    Send,
}

/// What is asked for.
#[derive(Debug)]
struct Plan {
    streams: usize,
    size: usize,
    time: Duration,
    direction: Direction,
    protocol: Protocol,
}

/// Runs it: `streams`, `size`, `direction`, `protocol`, `for`, `to`.
pub(in crate::workloads) fn run(given: &[(String, String)]) -> Result<Value, WorkloadError> {
    let mut arguments = Arguments::new("net_stream", given);
    let directions = [("send", Direction::Send), ("receive", Direction::Receive)];
    let size = arguments.read("size", "64KiB", message)?;
    let plan = Plan {
        streams: arguments.read("streams", "1", count)?,
        size,
        time: arguments.read("for", "5s", time)?,
        direction: arguments.choice("direction", &directions, "send or receive")?,
        protocol: protocol(&mut arguments, size)?,
    };
    let to = arguments.text("to").unwrap_or("localhost");
    arguments.end()?;
    let far = Far::reach(to, (plan.streams, plan.protocol))?;
    let (before, after) = flow(&plan, &far)?;
    let (bytes, seconds) = (after.bytes - before.bytes, (after.ns - before.ns) as f64 / 1e9);
    if bytes == 0 {
        return Err(NetError::Nothing { seconds }.into());
    }
    // Some that were overtaken may arrive after those sent later: never less than none.
    let (sent, arrived) = (after.sent - before.sent, after.arrived - before.arrived);
    let lost = sent.saturating_sub(arrived);
    Ok(json!({
        "throughput": bytes as f64 * 8.0 / 1e6 / seconds,
        "bytes": bytes,
        "lost": if sent == 0 { 0.0 } else { 100.0 * lost as f64 / sent as f64 },
        "lost_datagrams": lost,
        "seconds": seconds,
        "to": to,
        "addresses": far.addresses(),
    }))
}

/// What the receiver had at the beginning and at the end of the measured time.
fn flow(plan: &Plan, far: &Far) -> Result<(Reading, Reading), NetError> {
    let session = u64::from(std::process::id()) << 32 | u64::from(jiff::Timestamp::now().subsec_nanosecond() as u32);
    // Opens the session: first of all, and open until the end.
    let control = far.connect(0, Greeting { kind: Kind::Control, session, size: REQUEST })?;
    let kind = match (plan.protocol, plan.direction) {
        (Protocol::Tcp, Direction::Receive) => Kind::Source,
        (Protocol::Tcp, Direction::Send) => Kind::Sink,
        (Protocol::Udp, Direction::Receive) => Kind::UdpSource,
        (Protocol::Udp, Direction::Send) => Kind::UdpSink,
    };
    let greeting = Greeting { kind, session, size: plan.size };
    let counters: Vec<Arc<Counter>> = (0..plan.streams).map(|_| Arc::default()).collect();
    let (phase, start) = (Arc::new(Phase::default()), Arc::new(Barrier::new(plan.streams + 1)));
    let (sender, said) = mpsc::channel();
    let mut parties = Vec::new();
    for (number, counter) in counters.iter().enumerate() {
        let (stream, socket) = match plan.protocol {
            Protocol::Tcp => (far.connect(number, greeting)?, None),
            Protocol::Udp => far.connect_udp(number, greeting).map(|(stream, socket)| (stream, Some(socket)))?,
        };
        parties.push(Party {
            stream,
            socket,
            size: plan.size,
            counter: Arc::clone(counter),
            phase: Arc::clone(&phase),
            start: Arc::clone(&start),
            sender: sender.clone(),
        });
    }
    for (number, party) in parties.into_iter().enumerate() {
        let direction = plan.direction;
        start_thread(number, move || party.play(direction))?;
    }
    let began = Instant::now();
    let read = || match plan.direction {
        Direction::Receive => Ok(Reading::of(began, counters.iter().map(AsRef::as_ref))),
        Direction::Send => serve::ask(&control).map_err(NetError::of(peer(&control))),
    };
    start.wait();
    let readings = between(&said, plan.time, read);
    phase.set(Phase::OVER);
    readings
}

fn between(
    said: &Receiver<Result<(), NetError>>,
    time: Duration,
    read: impl Fn() -> Result<Reading, NetError>,
) -> Result<(Reading, Reading), NetError> {
    sleep_unless_failed(said, WARM_UP)?;
    let before = read()?;
    sleep_unless_failed(said, time)?;
    Ok((before, read()?))
}

/// One connection's thread.
struct Party {
    stream: TcpStream,
    /// With UDP, where `stream` only has to stay open.
    socket: Option<UdpSocket>,
    size: usize,
    counter: Arc<Counter>,
    phase: Arc<Phase>,
    start: Arc<Barrier>,
    sender: Sender<Result<(), NetError>>,
}

impl Party {
    fn play(self, direction: Direction) {
        let address = peer(&self.stream);
        self.start.wait();
        let Party { stream, size, phase, .. } = &self;
        let counted = (&*self.counter, &**phase);
        let result = match (direction, &self.socket) {
            (Direction::Receive, None) => flow::receive(stream, *size, counted),
            (Direction::Receive, Some(socket)) => flow::receive_datagrams(socket, counted, Some(&HELLO)),
            (Direction::Send, None) => flow::send(stream, *size, phase),
            (Direction::Send, Some(socket)) => flow::send_datagrams(socket, *size, phase),
        };
        // Nobody listens any more when the time is up.
        let _ = self.sender.send(result.map_err(NetError::of(address)));
    }
}
