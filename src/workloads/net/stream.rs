//! `builtin net_stream`: bytes in one direction over N connections for a time; the metric is what the receiver got.
//!
//! The receiver's own clock and counters are read before and after the measured time, so that what lies in buffers on
//! the way is not counted, and neither are connecting and the first 300 ms.

use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::far::Far;
use super::wire::{Counter, Greeting, Kind, REQUEST, Reading};
use super::{NetError, Phase, WARM_UP, flow, message, peer, serve, sleep_unless_failed, start_thread};
use crate::workloads::WorkloadError;
use crate::workloads::arguments::{Arguments, count, time};

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
}

/// Runs it: `streams`, `size`, `direction`, `for`, `to`.
pub(in crate::workloads) fn run(given: &[(String, String)]) -> Result<Value, WorkloadError> {
    let mut arguments = Arguments::new("net_stream", given);
    let directions = [("send", Direction::Send), ("receive", Direction::Receive)];
    let plan = Plan {
        streams: arguments.read("streams", "1", count)?,
        size: arguments.read("size", "64KiB", message)?,
        time: arguments.read("for", "5s", time)?,
        direction: arguments.choice("direction", &directions, "send or receive")?,
    };
    let to = arguments.text("to").unwrap_or("localhost");
    arguments.end()?;
    let far = Far::reach(to)?;
    let (before, after) = flow(&plan, &far)?;
    let (bytes, seconds) = (after.bytes - before.bytes, (after.ns - before.ns) as f64 / 1e9);
    if bytes == 0 {
        return Err(NetError::Nothing { seconds }.into());
    }
    Ok(json!({
        "throughput": bytes as f64 * 8.0 / 1e6 / seconds,
        "bytes": bytes,
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
    let kind = match plan.direction {
        Direction::Receive => Kind::Source,
        Direction::Send => Kind::Sink,
    };
    let greeting = Greeting { kind, session, size: plan.size };
    let streams: Result<Vec<TcpStream>, _> = (0..plan.streams).map(|number| far.connect(number, greeting)).collect();
    let counters: Vec<Arc<Counter>> = (0..plan.streams).map(|_| Arc::default()).collect();
    let (phase, start) = (Arc::new(Phase::default()), Arc::new(Barrier::new(plan.streams + 1)));
    let (sender, said) = mpsc::channel();
    for (number, stream) in streams?.into_iter().enumerate() {
        let party = Party {
            stream,
            size: plan.size,
            counter: Arc::clone(&counters[number]),
            phase: Arc::clone(&phase),
            start: Arc::clone(&start),
            sender: sender.clone(),
        };
        let direction = plan.direction;
        start_thread(number, move || party.play(direction))?;
    }
    let began = Instant::now();
    let read = || match plan.direction {
        Direction::Receive => {
            let bytes = counters.iter().map(|counter| counter.get()).sum();
            Ok(Reading { ns: began.elapsed().as_nanos() as u64, bytes })
        }
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
        let result = match direction {
            Direction::Receive => flow::receive(&self.stream, self.size, (&self.counter, &self.phase)),
            Direction::Send => flow::send(&self.stream, self.size, &self.phase),
        };
        // Nobody listens any more when the time is up.
        let _ = self.sender.send(result.map_err(NetError::of(address)));
    }
}
