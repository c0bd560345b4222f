//! `builtin net_transact`: clients that each send a request, sleep until the reply is there, and send the next.
//!
//! A transaction reads (a request of 8 bytes, a reply of `size`) or writes (a request of `size`, a reply of 8 bytes),
//! as a file server's clients do. [`Mix`] picks which, so that `receive` of all bytes come in.
//!
//! A transaction counts when its reply is complete, so all its bytes have been received by then. Rates count those that
//! end in the measured time, latencies those that begin in it: the last ones are waited for, however long they
//! take. With UDP, one whose reply does not come in 200 ms is lost, and the client goes on with the next.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::far::Far;
use super::flow::DATAGRAM_TIME;
use super::wire::{Greeting, Kind, REQUEST, Request};
use super::{NetError, Protocol, SILENCE, message, peer, protocol, sleep_unless_failed, start_thread};
use crate::workloads::WorkloadError;
use crate::workloads::arguments::{Arguments, count, share, time};
use crate::workloads::latency::Latency;
use crate::workloads::phase::{Phase, WARM_UP};

/// What is asked for.
#[derive(Debug)]
struct Plan {
    clients: usize,
    receive: f64,
    size: usize,
    time: Duration,
    protocol: Protocol,
}

/// Runs it: `clients`, `receive`, `size`, `protocol`, `for`, `to`.
pub(in crate::workloads) fn run(given: &[(String, String)]) -> Result<Value, WorkloadError> {
    let mut arguments = Arguments::new("net_transact", given);
    let size = arguments.read("size", "1KiB", message)?;
    let plan = Plan {
        clients: arguments.read("clients", "1", count)?,
        receive: arguments.read("receive", "50%", share)?,
        size,
        time: arguments.read("for", "5s", time)?,
        protocol: protocol(&mut arguments, size)?,
    };
    let to = arguments.text("to").unwrap_or("localhost");
    arguments.end()?;
    let far = Far::reach(to, (plan.clients, plan.protocol))?;
    let (tally, seconds) = play(&plan, &far)?;
    let transactions = tally.reads + tally.writes;
    if transactions == 0 || tally.latency.len() == 0 {
        return Err(NetError::Nothing { seconds }.into());
    }
    let (received, sent) = tally.bytes(plan.size as u64);
    Ok(json!({
        "throughput": (received + sent) as f64 * 8.0 / 1e6 / seconds,
        "transactions": transactions as f64 / seconds,
        "latency_p50": tally.latency.quantile_us(0.5),
        "latency_p99": tally.latency.quantile_us(0.99),
        "latency_max": tally.latency.longest_us(),
        "lost": 100.0 * tally.lost as f64 / (transactions + tally.lost) as f64,
        "lost_transactions": tally.lost,
        "reads": tally.reads,
        "writes": tally.writes,
        "received_bytes": received,
        "sent_bytes": sent,
        "seconds": seconds,
        "to": to,
        "addresses": far.addresses(),
    }))
}

/// What clients have done.
#[derive(Debug, Default)]
struct Tally {
    reads: u64,
    writes: u64,
    /// Begun in the measured time and given up.
    lost: u64,
    latency: Latency,
}

impl Tally {
    /// Bytes received and sent in transactions of that message size.
    fn bytes(&self, size: u64) -> (u64, u64) {
        let head = REQUEST as u64;
        (self.reads * size + self.writes * head, self.reads * head + self.writes * size)
    }
}

fn play(plan: &Plan, far: &Far) -> Result<(Tally, f64), NetError> {
    let kind = match plan.protocol {
        Protocol::Tcp => Kind::Transact,
        Protocol::Udp => Kind::UdpTransact,
    };
    let greeting = Greeting { kind, session: 0, size: plan.size };
    let (phase, start) = (Arc::new(Phase::default()), Arc::new(Barrier::new(plan.clients + 1)));
    let messages = Arc::new(Messages::new(plan.size));
    let (sender, said) = mpsc::channel();
    let mut clients = Vec::new();
    for number in 0..plan.clients {
        let line = match plan.protocol {
            Protocol::Tcp => Line::Tcp(far.connect(number, greeting)?),
            Protocol::Udp => {
                let (stream, socket) = far.connect_udp(number, greeting)?;
                let address = peer(&stream);
                Line::udp((stream, socket), plan.size).map_err(NetError::of(address))?
            }
        };
        clients.push(Client {
            line,
            messages: Arc::clone(&messages),
            mix: Mix { share: plan.receive, size: plan.size as f64, received: 0.0, all: 0.0 },
            phase: Arc::clone(&phase),
        });
    }
    for (number, client) in clients.into_iter().enumerate() {
        let (start, sender): (_, Sender<Result<Tally, NetError>>) = (Arc::clone(&start), sender.clone());
        start_thread(number, move || {
            start.wait();
            // Nobody listens any more when another client has failed.
            let _ = sender.send(client.play());
        })?;
    }
    drop(sender);
    start.wait();
    sleep_unless_failed(&said, WARM_UP)?;
    let began = Instant::now();
    phase.set(Phase::MEASURED);
    sleep_unless_failed(&said, plan.time)?;
    phase.set(Phase::OVER);
    let seconds = began.elapsed().as_secs_f64();
    gather(&said, plan.clients).map(|tally| (tally, seconds))
}

/// Waits for all clients, each of which gives up when the far end is silent.
fn gather(said: &Receiver<Result<Tally, NetError>>, clients: usize) -> Result<Tally, NetError> {
    let mut all = Tally::default();
    let deadline = Instant::now() + 2 * SILENCE;
    for number in 0..clients {
        let tally = match said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(tally) => tally?,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(NetError::Thread { number, source: io::Error::other("it did not end") });
            }
        };
        all.reads += tally.reads;
        all.writes += tally.writes;
        all.lost += tally.lost;
        all.latency.merge(&tally.latency);
    }
    Ok(all)
}

/// The two requests there are, made once.
#[derive(Debug)]
struct Messages {
    size: usize,
    read: [u8; REQUEST],
    write: Vec<u8>,
}

impl Messages {
    fn new(size: usize) -> Self {
        let more = (size - REQUEST) as u32;
        let mut write = vec![0; size];
        write[..REQUEST].copy_from_slice(&Request { reply: REQUEST as u32, more }.to_bytes());
        Messages { size, read: Request { reply: size as u32, more: 0 }.to_bytes(), write }
    }
}

/// One client's thread.
struct Client {
    line: Line,
    messages: Arc<Messages>,
    mix: Mix,
    phase: Arc<Phase>,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Lost,
}

impl Client {
    fn play(mut self) -> Result<Tally, NetError> {
        let mut tally = Tally::default();
        let mut inbox = vec![0; self.messages.size.min(64 << 10)];
        let address = self.line.peer();
        loop {
            let begun_in = self.phase.get();
            if begun_in == Phase::OVER {
                return Ok(tally);
            }
            let exchange = self.mix.next();
            let began = Instant::now();
            let outcome = match &mut self.line {
                Line::Tcp(stream) => self.messages.exchange(exchange, stream, &mut inbox),
                Line::Udp(datagrams) => datagrams.exchange(exchange, self.messages.size, &mut inbox),
            };
            let outcome = outcome.map_err(NetError::of(address))?;
            let took = began.elapsed();
            if begun_in == Phase::MEASURED {
                match outcome {
                    Outcome::Done => tally.latency.record(took),
                    Outcome::Lost => tally.lost += 1,
                }
            }
            if self.phase.get() == Phase::MEASURED && outcome == Outcome::Done {
                match exchange {
                    Exchange::Read => tally.reads += 1,
                    Exchange::Write => tally.writes += 1,
                }
            }
        }
    }
}

impl Messages {
    fn exchange(&self, exchange: Exchange, stream: &mut TcpStream, inbox: &mut [u8]) -> io::Result<Outcome> {
        let (request, mut missing) = match exchange {
            Exchange::Read => (&self.read[..], self.size),
            Exchange::Write => (&self.write[..], REQUEST),
        };
        stream.write_all(request)?;
        while missing > 0 {
            let room = missing.min(inbox.len());
            match stream.read(&mut inbox[..room]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => missing -= length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Outcome::Done)
    }
}

/// What a client speaks through.
enum Line {
    Tcp(TcpStream),
    Udp(Datagrams),
}

impl Line {
    fn udp((stream, socket): (TcpStream, UdpSocket), size: usize) -> io::Result<Self> {
        socket.set_read_timeout(Some(DATAGRAM_TIME))?;
        Ok(Line::Udp(Datagrams { stream, socket, outbox: vec![0; size], number: 0, heard: Instant::now() }))
    }

    fn peer(&self) -> SocketAddr {
        match self {
            Line::Tcp(stream) | Line::Udp(Datagrams { stream, .. }) => peer(stream),
        }
    }
}

/// Transactions in datagrams, each with a number, so that a late reply is not taken for the next one's.
struct Datagrams {
    /// Open as long as the far end is to answer.
    stream: TcpStream,
    socket: UdpSocket,
    outbox: Vec<u8>,
    number: u32,
    heard: Instant,
}

impl Datagrams {
    fn exchange(&mut self, exchange: Exchange, size: usize, inbox: &mut [u8]) -> io::Result<Outcome> {
        let (length, reply) = match exchange {
            Exchange::Read => (REQUEST, size),
            Exchange::Write => (size, REQUEST),
        };
        self.number = self.number.wrapping_add(1);
        let head = Request { reply: reply as u32, more: self.number }.to_bytes();
        self.outbox[..REQUEST].copy_from_slice(&head);
        self.socket.send(&self.outbox[..length])?;
        loop {
            match self.socket.recv(inbox) {
                Ok(got) if got == reply && inbox[..REQUEST] == head => {
                    self.heard = Instant::now();
                    return Ok(Outcome::Done);
                }
                // The reply to one given up before.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.heard.elapsed() <= SILENCE => {
                    return Ok(Outcome::Lost);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Which way the long message of a transaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exchange {
    Read,
    Write,
}

/// Picks what a client does next. Bytes received stay within one message of `share` of all bytes, as far as the 8 bytes
/// of the other direction let them: 100 % are read only, of which one request of 8 bytes per message is sent.
#[derive(Debug)]
struct Mix {
    share: f64,
    size: f64,
    received: f64,
    all: f64,
}

impl Mix {
    fn next(&mut self) -> Exchange {
        let head = REQUEST as f64;
        self.all += self.size + head;
        let wanted = self.share * self.all;
        let off = |received: f64| (self.received + received - wanted).abs();
        let (exchange, received) =
            if off(self.size) <= off(head) { (Exchange::Read, self.size) } else { (Exchange::Write, head) };
        self.received += received;
        exchange
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_stays_within_one_message() {
        for size in [64.0, 1024.0, 65_536.0] {
            for share in [0.25, 0.5, 0.6, 0.66, 0.75] {
                let mut mix = Mix { share, size, received: 0.0, all: 0.0 };
                for number in 0..10_000 {
                    mix.next();
                    let off = (mix.received - share * mix.all).abs();
                    assert!(off <= size, "{share} of {size}, transaction {number}: {off} bytes off");
                }
            }
        }
    }

    #[test]
    fn nothing_is_written_at_a_hundred_percent_and_nothing_read_at_none() {
        for (share, only) in [(1.0, Exchange::Read), (0.0, Exchange::Write)] {
            let mut mix = Mix { share, size: 1024.0, received: 0.0, all: 0.0 };
            assert!((0..1_000).all(|_| mix.next() == only), "{share}");
        }
    }

    #[test]
    fn bytes_are_transactions_times_sizes() {
        let tally = Tally { reads: 3, writes: 2, ..Tally::default() };
        assert_eq!(tally.bytes(1000), (3 * 1000 + 2 * 8, 3 * 8 + 2 * 1000));
    }
}
