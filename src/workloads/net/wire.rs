//! What the two ends say to each other. Whole numbers are little-endian.
//!
//! A connection begins with a [`Greeting`] of the client, answered with [`MAGIC`]. What follows depends on its kind:
//!
//! - `Control` opens a session, which lives as long as that connection. Each byte sent is answered with a [`Reading`].
//! - `Sink`: the client sends, the server counts for the session.
//! - `Source`: the server sends.
//! - `Transact`: a [`Request`] and perhaps more bytes from the client, a reply of the length it asked for.
//! - `UdpSink`, `UdpSource`, `UdpTransact`: likewise in datagrams. The server says to which port, as a [`u64`]; the TCP
//!   connection stays open until the client is done. Only the client's own address is spoken to. The first datagram of the
//!   client opens the way. A datagram of a stream begins with its number, a [`u64`]; a request with a [`Request`] whose
//!   `more` is its number, and its reply with the same 8 bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// First bytes in both directions.
pub(super) const MAGIC: [u8; 8] = *b"irqlab-1";

/// Length of a greeting.
pub(super) const GREETING: usize = 32;

/// Length of a request.
pub(super) const REQUEST: usize = 8;

/// Length of a reading.
pub(super) const READING: usize = 32;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Control = 1,
    Sink = 2,
    Source = 3,
    Transact = 4,
    UdpSink = 5,
    UdpSource = 6,
    UdpTransact = 7,
}

const KINDS: [Kind; 7] =
    [Kind::Control, Kind::Sink, Kind::Source, Kind::Transact, Kind::UdpSink, Kind::UdpSource, Kind::UdpTransact];

/// The client's first words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) kind: Kind,
    /// A number the client drew.
    pub(super) session: u64,
    /// Largest message, bytes.
    pub(super) size: usize,
}

impl Greeting {
    pub(super) fn to_bytes(self) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        let fields = [self.kind as u64, self.session, self.size as u64];
        bytes[..8].copy_from_slice(&MAGIC);
        for (field, place) in fields.iter().zip(bytes[8..].chunks_exact_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// `None` when the client speaks something else.
    pub(super) fn from_bytes(bytes: &[u8; GREETING]) -> Option<Self> {
        let mut fields = bytes[8..].chunks_exact(8).map(number);
        let (kind, session, size) = (fields.next()?, fields.next()?, fields.next()?);
        let kind = *KINDS.iter().find(|known| **known as u64 == kind)?;
        let fits = bytes[..8] == MAGIC && (REQUEST as u64..=super::MAX_MESSAGE).contains(&size);
        fits.then_some(Greeting { kind, session, size: size as usize })
    }
}

/// A little-endian number.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The head of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    /// Length of the reply, bytes.
    pub(super) reply: u32,
    /// Bytes that follow this head.
    pub(super) more: u32,
}

impl Request {
    pub(super) fn to_bytes(self) -> [u8; REQUEST] {
        (u64::from(self.more) << 32 | u64::from(self.reply)).to_le_bytes()
    }

    /// `bytes` has at least the length of a request.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Request { reply: number(&bytes[..4]) as u32, more: number(&bytes[4..REQUEST]) as u32 }
    }
}

/// What a receiver had counted at a time by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reading {
    /// Nanoseconds since some moment of its own.
    pub(super) ns: u64,
    /// Bytes received in this session.
    pub(super) bytes: u64,
    /// Datagrams received.
    pub(super) arrived: u64,
    /// Datagrams sent, as far as the numbers of those received tell.
    pub(super) sent: u64,
}

impl Reading {
    pub(super) fn of<'a>(began: Instant, counters: impl Iterator<Item = &'a Counter>) -> Self {
        let mut reading = Reading { ns: began.elapsed().as_nanos() as u64, ..Reading::default() };
        for Counter { bytes, arrived, sent } in counters {
            reading.bytes += bytes.load(Ordering::Relaxed);
            reading.arrived += arrived.load(Ordering::Relaxed);
            reading.sent += sent.load(Ordering::Relaxed);
        }
        reading
    }

    pub(super) fn to_bytes(self) -> [u8; READING] {
        let mut bytes = [0; READING];
        let fields = [self.ns, self.bytes, self.arrived, self.sent];
        for (field, place) in fields.iter().zip(bytes.chunks_exact_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; READING]) -> Self {
        let field = |index: usize| number(&bytes[8 * index..8 * (index + 1)]);
        Reading { ns: field(0), bytes: field(1), arrived: field(2), sent: field(3) }
    }
}

/// What one connection has received. On a cache line of its own: its receiver writes it all the time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counter {
    bytes: AtomicU64,
    arrived: AtomicU64,
    sent: AtomicU64,
}

impl Counter {
    /// Only one thread counts.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// A datagram, whose sender numbers them from 0. One that was overtaken by others has arrived all the same.
    pub(super) fn add_datagram(&self, bytes: usize, number: u64) {
        self.add(bytes);
        self.arrived.store(self.arrived.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.sent.fetch_max(number.saturating_add(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        for kind in KINDS {
            let greeting = Greeting { kind, session: u64::MAX - 1, size: 16 << 20 };
            assert_eq!(Greeting::from_bytes(&greeting.to_bytes()), Some(greeting));
        }
        let request = Request { reply: 0x0102_0304, more: 0xfffe_fdfc };
        assert_eq!(Request::from_bytes(&request.to_bytes()), request);
        let reading = Reading { ns: 1 << 40, bytes: u64::MAX, arrived: 3, sent: 1 << 63 };
        assert_eq!(Reading::from_bytes(&reading.to_bytes()), reading);
    }

    #[test]
    fn what_did_not_arrive_is_told_by_the_numbers_of_what_did() {
        let counter = Counter::default();
        for number in [0, 1, 4, 3, 7] {
            counter.add_datagram(100, number);
        }
        let reading = Reading::of(Instant::now(), [&counter, &counter].into_iter());
        assert_eq!((reading.bytes, reading.arrived, reading.sent), (1_000, 10, 16));
    }

    #[test]
    fn a_greeting_of_somebody_else_is_none() {
        let greeting = Greeting { kind: Kind::Sink, session: 1, size: 8 }.to_bytes();
        for (place, byte) in [(0, b'G'), (7, b'2'), (8, 9), (24, 7), (28, 1)] {
            let mut other = greeting;
            other[place] = byte;
            assert_eq!(Greeting::from_bytes(&other), None, "byte {place}");
        }
    }
}
