//! `builtin disk_read path=PATH`: direct reads of a file, of a block device, or of a file of its own in a folder.
//!
//! Opens what is there for reading only, and a device never otherwise. In a folder it makes a file without a name (or
//! one whose name is gone at once), so that nothing stays behind, however the process ends.
//!
//! `depth` threads each keep one `pread(2)` in flight; they sleep until it is complete. Random reads are of whole blocks,
//! drawn with the same seeds in each run; sequential ones are of one sequence that all threads share and that begins
//! again at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, PosixFadviseAdvice, fcntl, posix_fadvise};
use nix::sys::statfs::{FsType, TMPFS_MAGIC, fstatfs};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::WorkloadError;
use super::arguments::{Arguments, bad, bytes, count, time};
use super::latency::Latency;
use super::phase::{Phase, WARM_UP};

/// What direct reads are aligned to in memory: no logical block is larger than a page.
const ALIGNMENT: usize = 4096;

/// How long a read may take.
const SILENCE: Duration = Duration::from_secs(60);

/// `RAMFS_MAGIC` of the kernel's include/uapi/linux/magic.h.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);

/// Which blocks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Random,
    Sequential,
}

/// What is asked for.
#[derive(Debug)]
struct Plan {
    size: u64,
    block: usize,
    depth: usize,
    pattern: Pattern,
    time: Duration,
}

/// Why the disk cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Fewer bytes than one block.
    #[error("`{path}` has {bytes} bytes, less than one block of {block}")]
    Empty { path: String, bytes: u64, block: usize },
    /// A directory, file or device that cannot be used, or a failed read.
    #[error("`{path}`: {what}: {source}")]
    File { path: String, what: &'static str, source: io::Error },
    /// Nothing was read in the measured time.
    #[error("`{path}`: no read was complete in the {seconds:.3} s that were measured")]
    Nothing { path: String, seconds: f64 },
    /// Memory, behind which is no disk.
    #[error("`{path}` is in memory (tmpfs): no disk is read there")]
    NoDisk { path: String },
    /// Neither file, folder nor block device.
    #[error("`{path}` is not a file, a folder or a block device")]
    NotReadable { path: String },
}

/// Runs it: `path`, `size`, `block`, `pattern`, `depth`, `for`.
pub(super) fn run(given: &[(String, String)]) -> Result<Value, WorkloadError> {
    let mut arguments = Arguments::new("disk_read", given);
    let path = arguments.required("path")?;
    let patterns = [("random", Pattern::Random), ("sequential", Pattern::Sequential)];
    let plan = Plan {
        size: arguments.read("size", "256MiB", bytes)?,
        block: arguments.read("block", "4KiB", block)?,
        depth: arguments.read("depth", "1", count)?,
        pattern: arguments.choice("pattern", &patterns, "random or sequential")?,
        time: arguments.read("for", "5s", time)?,
    };
    arguments.end()?;
    if plan.size < plan.block as u64 {
        return Err(bad("size", &format!("{}B", plan.size), "one block or more"));
    }
    let (file, length) = open(path, &plan)?;
    let blocks = length.min(plan.size) / plan.block as u64;
    if blocks == 0 {
        return Err(DiskError::Empty { path: path.to_owned(), bytes: length, block: plan.block }.into());
    }
    let (tally, seconds) = read(path, &plan, (file, blocks))?;
    if tally.reads == 0 || tally.latency.len() == 0 {
        return Err(DiskError::Nothing { path: path.to_owned(), seconds }.into());
    }
    Ok(json!({
        "throughput": (tally.reads * plan.block as u64) as f64 / 1e6 / seconds,
        "iops": tally.reads as f64 / seconds,
        "latency_p50": tally.latency.quantile_us(0.5),
        "latency_p99": tally.latency.quantile_us(0.99),
        "latency_max": tally.latency.longest_us(),
        "reads": tally.reads,
        "region_bytes": blocks * plan.block as u64,
        "seconds": seconds,
        "path": path,
    }))
}

fn block(text: &str) -> Result<usize, &'static str> {
    let expected = "a size from `512B` to `16MiB` in steps of 512 bytes";
    let size = bytes(text).map_err(|_| expected)?;
    if size.is_multiple_of(512) && size <= 16 << 20 { Ok(size as usize) } else { Err(expected) }
}

fn fault(path: &str, what: &'static str) -> impl Fn(io::Error) -> DiskError {
    let path = path.to_owned();
    move |source| DiskError::File { path: path.clone(), what, source }
}

/// A file for direct reads and its length, bytes.
fn open(path: &str, plan: &Plan) -> Result<(File, u64), DiskError> {
    let kind = Path::new(path).metadata().map_err(|source| {
        let what = match source.kind() {
            io::ErrorKind::NotFound => "name a file, a block device, or a folder to have a file made in it",
            _ => "cannot be looked at",
        };
        fault(path, what)(source)
    })?;
    let kind = kind.file_type();
    let mut file = if kind.is_dir() {
        make(path, plan.size)?
    } else if kind.is_file() || kind.is_block_device() {
        let options = OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECT.bits()).open(path);
        options.map_err(fault(path, "cannot be opened for direct reads"))?
    } else {
        return Err(DiskError::NotReadable { path: path.to_owned() });
    };
    if !kind.is_block_device() {
        refuse_memory(path, &file)?;
    }
    let length = file.seek(SeekFrom::End(0)).map_err(fault(path, "cannot tell its length"))?;
    Ok((file, length))
}

fn refuse_memory(path: &str, file: &File) -> Result<(), DiskError> {
    let kind = fstatfs(file).map_err(|error| fault(path, "cannot tell its file system")(error.into()))?;
    let memory = [TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind.filesystem_type());
    if memory { Err(DiskError::NoDisk { path: path.to_owned() }) } else { Ok(()) }
}

/// A file of `size` bytes in that folder that goes with its descriptor, on the disk and out of the page cache.
fn make(folder: &str, size: u64) -> Result<File, DiskError> {
    let mut file = tempfile::tempfile_in(folder).map_err(fault(folder, "cannot make a file there"))?;
    refuse_memory(folder, &file)?;
    // Not zeros, which some file systems and disks do not store.
    let mut random = Xoshiro256StarStar::seed_from_u64(0);
    let mut chunk = vec![0; 1 << 20];
    random.fill_bytes(&mut chunk);
    let written = io::copy(&mut Endless { chunk: &chunk, at: 0 }.take(size), &mut file);
    let written = written.and_then(|_| file.flush()).and_then(|()| file.sync_all());
    written.map_err(fault(folder, "cannot write a file there"))?;
    let direct = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .and_then(|()| fcntl(&file, FcntlArg::F_GETFL))
        .and_then(|flags| fcntl(&file, FcntlArg::F_SETFL(OFlag::from_bits_truncate(flags) | OFlag::O_DIRECT)));
    direct.map_err(|error| fault(folder, "its file system has no direct reads")(error.into()))?;
    Ok(file)
}

/// A chunk again and again.
struct Endless<'a> {
    chunk: &'a [u8],
    at: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = (self.chunk.len() - self.at).min(buffer.len());
        buffer[..length].copy_from_slice(&self.chunk[self.at..self.at + length]);
        self.at = (self.at + length) % self.chunk.len();
        Ok(length)
    }
}

/// What readers have done.
#[derive(Debug, Default)]
struct Tally {
    reads: u64,
    latency: Latency,
}

fn read(path: &str, plan: &Plan, (file, blocks): (File, u64)) -> Result<(Tally, f64), WorkloadError> {
    let (file, next, phase) = (Arc::new(file), Arc::new(AtomicU64::new(0)), Arc::new(Phase::default()));
    let start = Arc::new(Barrier::new(plan.depth + 1));
    let (sender, said) = mpsc::channel();
    for number in 0..plan.depth {
        let reader = Reader {
            file: Arc::clone(&file),
            block: plan.block,
            blocks,
            order: match plan.pattern {
                Pattern::Random => Order::Random(Box::new(Xoshiro256StarStar::seed_from_u64(number as u64))),
                Pattern::Sequential => Order::Shared(Arc::clone(&next)),
            },
            phase: Arc::clone(&phase),
        };
        let (start, sender): (_, Sender<io::Result<Tally>>) = (Arc::clone(&start), sender.clone());
        let work = move || {
            start.wait();
            // Nobody listens any more when another reader has failed.
            let _ = sender.send(reader.play());
        };
        let started = thread::Builder::new().stack_size(256 << 10).spawn(work);
        started.map_err(|source| WorkloadError::Kernel { what: "starting a thread", advice: None, source })?;
    }
    drop(sender);
    let failed = |error: io::Error| {
        let what = match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EINVAL) => "`block` has to be a multiple of the disk's logical block",
            _ => "a read failed",
        };
        fault(path, what)(error)
    };
    let sleep = |time| match said.recv_timeout(time) {
        Ok(Err(error)) => Err(failed(error)),
        Ok(Ok(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
    };
    start.wait();
    sleep(WARM_UP)?;
    let began = Instant::now();
    phase.set(Phase::MEASURED);
    sleep(plan.time)?;
    phase.set(Phase::OVER);
    let seconds = began.elapsed().as_secs_f64();
    let mut all = Tally::default();
    for _ in 0..plan.depth {
        let tally = said.recv_timeout(SILENCE).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let tally = tally.map_err(failed)?;
        all.reads += tally.reads;
        all.latency.merge(&tally.latency);
    }
    Ok((all, seconds))
}

/// Where the next block is.
#[derive(Debug)]
enum Order {
    Random(Box<Xoshiro256StarStar>),
    Shared(Arc<AtomicU64>),
}

impl Order {
    /// A block below `blocks`.
    fn next(&mut self, blocks: u64) -> u64 {
        match self {
            // The high half of the product: as even as the 64 bits drawn (Lemire 2019, without the rejection).
            Order::Random(random) => ((u128::from(random.next_u64()) * u128::from(blocks)) >> 64) as u64,
            Order::Shared(next) => next.fetch_add(1, Ordering::Relaxed) % blocks,
        }
    }
}

/// One reader's thread.
struct Reader {
    file: Arc<File>,
    block: usize,
    blocks: u64,
    order: Order,
    phase: Arc<Phase>,
}

impl Reader {
    fn play(mut self) -> io::Result<Tally> {
        let mut tally = Tally::default();
        let mut room = vec![0_u8; self.block + ALIGNMENT];
        let first = room.as_ptr().align_offset(ALIGNMENT);
        let buffer = &mut room[first..first + self.block];
        loop {
            let begun_in = self.phase.get();
            if begun_in == Phase::OVER {
                return Ok(tally);
            }
            let offset = self.order.next(self.blocks) * self.block as u64;
            let began = Instant::now();
            self.file.read_exact_at(buffer, offset)?;
            if begun_in == Phase::MEASURED {
                tally.latency.record(began.elapsed());
            }
            if self.phase.get() == Phase::MEASURED {
                tally.reads += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_blocks_are_all_of_them_and_no_other() {
        let mut order = Order::Random(Box::new(Xoshiro256StarStar::seed_from_u64(1)));
        let mut seen = [0; 7];
        for _ in 0..7_000 {
            seen[order.next(7) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (800..1_200).contains(count)), "{seen:?}");
    }

    #[test]
    fn readers_in_sequence_share_one_sequence_that_begins_again() {
        let next = Arc::new(AtomicU64::new(0));
        let mut orders = [Order::Shared(Arc::clone(&next)), Order::Shared(next)];
        let blocks: Vec<u64> = (0..6).map(|number| orders[number % 2].next(4)).collect();
        assert_eq!(blocks, [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn blocks_are_multiples_of_a_sector() {
        assert_eq!(block("4KiB"), Ok(4096));
        assert!(["0B", "100B", "513B", "32MiB", "4"].iter().all(|text| block(text).is_err()));
    }

    #[test]
    fn memory_is_not_taken_for_a_disk() {
        let plan = Plan { size: 4096, block: 4096, depth: 1, pattern: Pattern::Random, time: Duration::from_millis(1) };
        let error = open("/dev/shm", &plan).unwrap_err().to_string();
        assert!(error.contains("`/dev/shm` is in memory"), "{error}");
        let error = open("/dev/null", &plan).unwrap_err().to_string();
        assert!(error.contains("`/dev/null` is not a file, a folder or a block device"), "{error}");
    }
}
