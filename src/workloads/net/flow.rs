//! Bytes in one direction, at either end.

use std::io::{self, Read, Write};

use super::Phase;
use super::wire::Counter;

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
