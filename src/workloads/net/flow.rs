//! Bytes in one direction, at either end.

use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use super::wire::{Counter, REQUEST, number};
use super::{MAX_DATAGRAM, SILENCE};
use crate::workloads::phase::Phase;

/// How long a receiver of datagrams sleeps before it looks whether it is over, or asks again.
pub(super) const DATAGRAM_TIME: Duration = Duration::from_millis(200);

/// Writes `size` bytes at a time until the phase is over or the other end is gone.
pub(super) fn send(mut to: impl Write, size: usize, phase: &Phase) -> io::Result<()> {
    let message = vec![0; size];
    while phase.get() != Phase::OVER {
        to.write_all(&message)?;
    }
    Ok(())
}

/// Reads and counts, at most `size` bytes at a time, until the phase is over. The other end closing before is an
/// `UnexpectedEof`.
pub(super) fn receive(mut from: impl Read, size: usize, (counter, phase): (&Counter, &Phase)) -> io::Result<()> {
    let mut message = vec![0; size];
    while phase.get() != Phase::OVER {
        match from.read(&mut message) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => counter.add(length),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends numbered datagrams of `size` bytes until the phase is over.
pub(super) fn send_datagrams(to: &UdpSocket, size: usize, phase: &Phase) -> io::Result<()> {
    let mut message = vec![0; size];
    let mut next: u64 = 0;
    while phase.get() != Phase::OVER {
        message[..REQUEST].copy_from_slice(&next.to_le_bytes());
        match to.send(&message) {
            Ok(_) => next += 1,
            // No room in the device's queue: the datagram was not sent, and has no number yet.
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENOBUFS as i32) => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Counts datagrams until the phase is over. Says `hello` until the first comes, where there is one to say.
pub(super) fn receive_datagrams(
    from: &UdpSocket,
    (counter, phase): (&Counter, &Phase),
    hello: Option<&[u8]>,
) -> io::Result<()> {
    let mut message = vec![0; MAX_DATAGRAM];
    let mut heard = Instant::now();
    from.set_read_timeout(Some(DATAGRAM_TIME))?;
    if let Some(hello) = hello {
        from.send(hello)?;
    }
    while phase.get() != Phase::OVER {
        match from.recv(&mut message) {
            Ok(length) if length >= REQUEST => {
                counter.add_datagram(length, number(&message[..REQUEST]));
                heard = Instant::now();
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // At the end of a client that is done nobody is sending: only clients complain.
                if let Some(hello) = hello {
                    if heard.elapsed() > SILENCE {
                        return Err(error);
                    }
                    from.send(hello)?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
