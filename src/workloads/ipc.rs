//! `builtin ipc kind=KIND for=TIME`: two parties pass a token to and fro; the metric is round trips a second.
//!
//! The parties are two threads of one process, `ping` and `pong`. When the process may use two or more CPUs, `ping`
//! is kept to the lowest and `pong` to the next; with one CPU they share it. Kinds:
//!
//! | kind | the token is | waiting is |
//! | --- | --- | --- |
//! | `message_queue` | one byte in a POSIX message queue of length 1 | asleep in `mq_receive` |
//! | `pipe` | one byte in a pipe | asleep in `read` |
//! | `semaphore` | an `eventfd` with `EFD_SEMAPHORE` | asleep in `read` |
//! | `signal` | SIGUSR1 by `pthread_kill` | asleep in `sigwait` |
//! | `spinlock` | an atomic number | spinning |
//! | `yield` | an atomic number | `sched_yield` until it changes |
//!
//! The loops read no clock. The main thread sleeps for the time given, then reads how many round trips there were:
//! the count holds also when a loop hangs or makes three round trips a second, as a spinlock on one CPU does. The
//! spinning kinds look at the clock once in a million spins, in case nobody else gets the CPU under `SCHED_FIFO`.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::mqueue::{MQ_OFlag, MqAttr, MqdT, mq_open, mq_receive, mq_send, mq_unlink};
use nix::sched::{sched_getcpu, sched_yield};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use serde_json::{Value, json};

use super::arguments::{bad, time};
use super::{WorkloadError, affinity};
use crate::cpu_set::CpuSet;

/// How long the parties may take to end once they are told to; a party that hangs is left behind.
const FAREWELL: Duration = Duration::from_millis(500);

/// How the token is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    MessageQueue,
    Pipe,
    Semaphore,
    Signal,
    Spinlock,
    Yield,
}

/// Runs it: `kind`, and `for` as a time with a unit (`2s`, `500ms`, `1min`).
pub(super) fn run(arguments: &[(String, String)]) -> Result<Value, WorkloadError> {
    let (mut kind, mut limit) = (None, None);
    for (key, value) in arguments {
        match key.as_str() {
            "kind" => kind = Some(read_kind(value)?),
            "for" => limit = Some(time(value).map_err(|expected| bad("for", value, expected))?),
            _ => return Err(WorkloadError::UnknownArgument { workload: "ipc", argument: key.clone() }),
        }
    }
    let kind = kind.ok_or(WorkloadError::MissingArgument { workload: "ipc", argument: "kind" })?;
    let limit = limit.ok_or(WorkloadError::MissingArgument { workload: "ipc", argument: "for" })?;
    play(kind, limit)
}

fn read_kind(text: &str) -> Result<Kind, WorkloadError> {
    match text {
        "message_queue" => Ok(Kind::MessageQueue),
        "pipe" => Ok(Kind::Pipe),
        "semaphore" => Ok(Kind::Semaphore),
        "signal" => Ok(Kind::Signal),
        "spinlock" => Ok(Kind::Spinlock),
        "yield" => Ok(Kind::Yield),
        _ => Err(WorkloadError::BadArgument {
            argument: "kind",
            value: text.to_owned(),
            expected: "signal, message_queue, pipe, semaphore, yield or spinlock",
        }),
    }
}

/// What both parties and the main thread see. Each on a cache line of its own, so that counting and looking at the stop
/// sign do not slow the token down.
#[derive(Debug)]
struct Shared {
    loops: Line<AtomicU64>,
    stop: Line<AtomicBool>,
    turn: Line<AtomicU32>,
    deadline: Instant,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    /// Looks at the clock; for those who spin.
    fn stop_when_late(&self) {
        if Instant::now() >= self.deadline {
            self.stop.0.store(true, Ordering::Relaxed);
        }
    }
}

/// One party's hold on the token.
trait End: Send + 'static {
    /// Gives the token away.
    fn give(&mut self) -> io::Result<()>;

    /// Waits for the token; may come back without it once the stop sign is up.
    fn take(&mut self) -> io::Result<()>;

    /// Called in the party's own thread before the first move.
    fn settle_in(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a party says at its end.
struct Farewell {
    party: usize,
    cpus: io::Result<(usize, usize)>,
}

fn play(kind: Kind, limit: Duration) -> Result<Value, WorkloadError> {
    // Blocked before any thread is made, so that no other thread gets it.
    SigSet::from(Signal::SIGUSR1).thread_block().map_err(|error| kernel("blocking SIGUSR1")(error.into()))?;
    let shared = Arc::new(Shared {
        loops: Line::default(),
        stop: Line::default(),
        turn: Line::default(),
        deadline: Instant::now() + limit + FAREWELL / 2,
    });
    let cpus = affinity::current().map_err(kernel("reading the CPUs allowed"))?;
    let start = Arc::new(Barrier::new(3));
    let (sender, receiver) = mpsc::channel();
    let table = Table { shared: Arc::clone(&shared), start: Arc::clone(&start), sender, cpus };
    let handles = match kind {
        Kind::MessageQueue => {
            let (ping, pong) = message_queues()?;
            table.seat(ping, pong)
        }
        Kind::Pipe => {
            let (ping, pong) = pipes().map_err(kernel("making a pipe"))?;
            table.seat(ping, pong)
        }
        Kind::Semaphore => {
            let (ping, pong) = semaphores().map_err(kernel("making an eventfd"))?;
            table.seat(ping, pong)
        }
        Kind::Signal => {
            let (ping, pong) = signals();
            table.seat(ping, pong)
        }
        Kind::Spinlock => {
            let end = |me| Spin { shared: Arc::clone(&shared), me };
            table.seat(end(0), end(1))
        }
        Kind::Yield => {
            let end = |me| Yield { shared: Arc::clone(&shared), me };
            table.seat(end(0), end(1))
        }
    };
    // Before the start: under `SCHED_FIFO` this thread may not get the CPU again before the parties let it.
    let began = Instant::now();
    start.wait();
    let said = watch(&shared, &receiver, (began, limit));
    drop(handles);
    said
}

fn kernel(what: &'static str) -> impl Fn(io::Error) -> WorkloadError {
    move |source| WorkloadError::Kernel { what, advice: None, source }
}

/// The main thread's part: sleep, count, let the parties end.
fn watch(
    shared: &Shared,
    receiver: &Receiver<Farewell>,
    (began, limit): (Instant, Duration),
) -> Result<Value, WorkloadError> {
    let early = receiver.recv_timeout(limit.saturating_sub(began.elapsed()));
    let (elapsed, loops) = (began.elapsed().as_secs_f64(), shared.loops.0.load(Ordering::Relaxed));
    shared.stop.0.store(true, Ordering::Relaxed);
    let last_call = Instant::now() + FAREWELL;
    let mut farewells = [const { None }; 2];
    let mut next = early;
    loop {
        match next {
            Ok(Farewell { party, cpus }) => {
                farewells[party] = Some(cpus.map_err(kernel("passing the token"))?);
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() >= last_call => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if farewells.iter().all(Option::is_some) {
            break;
        }
        next = receiver.recv_timeout(last_call.saturating_duration_since(Instant::now()));
    }
    let text = |cpu: Option<usize>| cpu.map_or("?".to_owned(), |cpu| cpu.to_string());
    let both = |pick: fn((usize, usize)) -> usize| farewells.map(|cpus| text(cpus.map(pick))).join(" ");
    Ok(json!({
        "rate": loops as f64 / elapsed,
        "loops": loops,
        "seconds": elapsed,
        "cpus": both(|cpus| cpus.0),
        "cpus_at_end": both(|cpus| cpus.1),
        "ended": if farewells.iter().all(Option::is_some) { "in time" } else { "a party hung at the limit" },
    }))
}

type Turns<E> = fn(&mut E, &Shared) -> io::Result<()>;

/// Where the parties sit down.
struct Table {
    shared: Arc<Shared>,
    start: Arc<Barrier>,
    sender: Sender<Farewell>,
    cpus: CpuSet,
}

impl Table {
    /// The handles are held until the end: a thread that ended but is not joined or detached may still be signalled.
    fn seat(self, ping: impl End, pong: impl End) -> [JoinHandle<()>; 2] {
        [self.spawn(0, ping, ping_loop), self.spawn(1, pong, pong_loop)]
    }

    fn spawn<E: End>(&self, party: usize, mut end: E, turns: Turns<E>) -> JoinHandle<()> {
        let (shared, start, sender) = (Arc::clone(&self.shared), Arc::clone(&self.start), self.sender.clone());
        let seat = self.cpus.iter().nth(party).filter(|_| self.cpus.len() > 1).map(CpuSet::single);
        thread::spawn(move || {
            let prepared = seat.map_or(Ok(()), |cpu| affinity::keep_to(&cpu)).and_then(|()| end.settle_in());
            start.wait();
            let cpu = || Ok::<_, io::Error>(sched_getcpu()?);
            let played = prepared.and_then(|()| cpu()).and_then(|first| {
                turns(&mut end, &shared)?;
                Ok((first, cpu()?))
            });
            // Nobody listens any more when it comes too late.
            let _ = sender.send(Farewell { party, cpus: played });
        })
    }
}

fn ping_loop<E: End>(end: &mut E, shared: &Shared) -> io::Result<()> {
    let mut loops = 0;
    while !shared.stopped() {
        end.give()?;
        end.take()?;
        loops += 1;
        shared.loops.0.store(loops, Ordering::Relaxed);
    }
    // `pong` sleeps: once more, so that it sees the stop sign.
    end.give()
}

fn pong_loop<E: End>(end: &mut E, shared: &Shared) -> io::Result<()> {
    loop {
        end.take()?;
        if shared.stopped() {
            // `ping` may sleep as well, when the sign went up between its give and this take.
            return end.give().or(Ok(()));
        }
        end.give()?;
    }
}

struct Pipe {
    reader: io::PipeReader,
    writer: io::PipeWriter,
}

fn pipes() -> io::Result<(Pipe, Pipe)> {
    let (from_pong, to_ping) = io::pipe()?;
    let (from_ping, to_pong) = io::pipe()?;
    Ok((Pipe { reader: from_pong, writer: to_pong }, Pipe { reader: from_ping, writer: to_ping }))
}

impl End for Pipe {
    fn give(&mut self) -> io::Result<()> {
        match self.writer.write(&[1]) {
            // The other party has left the table.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map(|_| ()),
        }
    }

    fn take(&mut self) -> io::Result<()> {
        self.reader.read(&mut [0]).map(|_| ())
    }
}

struct Semaphore {
    mine: Arc<EventFd>,
    other: Arc<EventFd>,
}

fn semaphores() -> io::Result<(Semaphore, Semaphore)> {
    let make = || EventFd::from_value_and_flags(0, EfdFlags::EFD_SEMAPHORE | EfdFlags::EFD_CLOEXEC);
    let (ping, pong) = (Arc::new(make()?), Arc::new(make()?));
    let first = Semaphore { mine: Arc::clone(&ping), other: Arc::clone(&pong) };
    Ok((first, Semaphore { mine: pong, other: ping }))
}

impl End for Semaphore {
    fn give(&mut self) -> io::Result<()> {
        self.other.write(1)?;
        Ok(())
    }

    fn take(&mut self) -> io::Result<()> {
        self.mine.read()?;
        Ok(())
    }
}

struct Queue {
    inbox: Arc<MqdT>,
    outbox: Arc<MqdT>,
}

fn message_queues() -> Result<(Queue, Queue), WorkloadError> {
    let open = |party: &str| {
        let name = format!("/irqlab-{}-{party}", std::process::id());
        let attributes = MqAttr::new(0, 1, 1, 0);
        let flags = MQ_OFlag::O_RDWR | MQ_OFlag::O_CREAT | MQ_OFlag::O_EXCL | MQ_OFlag::O_CLOEXEC;
        let queue = mq_open(name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR, Some(&attributes));
        let queue = queue.map_err(|error| WorkloadError::Kernel {
            what: "making a POSIX message queue",
            advice: match error {
                nix::errno::Errno::ENOSYS => Some("this kernel has none: CONFIG_POSIX_MQUEUE"),
                nix::errno::Errno::EMFILE | nix::errno::Errno::ENOSPC => {
                    Some("too many: see /proc/sys/fs/mqueue/queues_max and `ulimit -q`")
                }
                _ => None,
            },
            source: error.into(),
        })?;
        // The queue lives as long as its descriptor: nothing stays behind, however the process ends.
        mq_unlink(name.as_str()).map_err(|error| kernel("unlinking a message queue")(error.into()))?;
        Ok::<_, WorkloadError>(Arc::new(queue))
    };
    let (ping, pong) = (open("ping")?, open("pong")?);
    let first = Queue { inbox: Arc::clone(&ping), outbox: Arc::clone(&pong) };
    Ok((first, Queue { inbox: pong, outbox: ping }))
}

impl End for Queue {
    fn give(&mut self) -> io::Result<()> {
        Ok(mq_send(&self.outbox, &[1], 0)?)
    }

    fn take(&mut self) -> io::Result<()> {
        mq_receive(&self.inbox, &mut [0], &mut 0)?;
        Ok(())
    }
}

/// Each tells the other which thread to signal, once, before the first move.
struct SignalEnd {
    introduce: Sender<Pthread>,
    meet: Receiver<Pthread>,
    other: Option<Pthread>,
    set: SigSet,
}

fn signals() -> (SignalEnd, SignalEnd) {
    let (to_pong, from_ping) = mpsc::channel();
    let (to_ping, from_pong) = mpsc::channel();
    let end = |introduce, meet| SignalEnd { introduce, meet, other: None, set: SigSet::from(Signal::SIGUSR1) };
    (end(to_pong, from_pong), end(to_ping, from_ping))
}

impl End for SignalEnd {
    fn settle_in(&mut self) -> io::Result<()> {
        let gone = |_| io::Error::other("the other party did not come");
        self.introduce.send(pthread_self()).map_err(|_| io::Error::other("the other party did not come"))?;
        self.other = Some(self.meet.recv().map_err(gone)?);
        Ok(())
    }

    fn give(&mut self) -> io::Result<()> {
        match self.other.map(|other| pthread_kill(other, Signal::SIGUSR1)) {
            // ESRCH: the other party has left the table.
            Some(Ok(()) | Err(nix::errno::Errno::ESRCH)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
            None => Err(io::Error::other("the other party is not known")),
        }
    }

    fn take(&mut self) -> io::Result<()> {
        self.set.wait()?;
        Ok(())
    }
}

struct Spin {
    shared: Arc<Shared>,
    me: u32,
}

impl End for Spin {
    fn give(&mut self) -> io::Result<()> {
        self.shared.turn.0.store(1 - self.me, Ordering::Release);
        Ok(())
    }

    fn take(&mut self) -> io::Result<()> {
        let mut spins: u32 = 0;
        while self.shared.turn.0.load(Ordering::Acquire) != self.me && !self.shared.stopped() {
            std::hint::spin_loop();
            spins += 1;
            if spins == 1 << 20 {
                spins = 0;
                self.shared.stop_when_late();
            }
        }
        Ok(())
    }
}

struct Yield {
    shared: Arc<Shared>,
    me: u32,
}

impl End for Yield {
    fn give(&mut self) -> io::Result<()> {
        self.shared.turn.0.store(1 - self.me, Ordering::Release);
        Ok(())
    }

    fn take(&mut self) -> io::Result<()> {
        while self.shared.turn.0.load(Ordering::Acquire) != self.me && !self.shared.stopped() {
            sched_yield()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_passes_the_token_and_ends_in_time() {
        for kind in [Kind::MessageQueue, Kind::Pipe, Kind::Semaphore, Kind::Signal, Kind::Spinlock, Kind::Yield] {
            // A loaded machine may give a party no CPU in so short a time: again, then.
            let mut tries = (0..50).map(|_| play(kind, Duration::from_millis(60)));
            let passed = |said: &Result<Value, _>| said.as_ref().map_or(true, |said| said["loops"] != 0);
            let said = match tries.find(passed).expect("the token moves in 50 tries") {
                Err(WorkloadError::Kernel { advice: Some(advice), .. }) => {
                    println!("skipped: {kind:?}: {advice}");
                    continue;
                }
                said => said.unwrap(),
            };
            assert!(said["rate"].as_f64().unwrap() > 0.0, "{kind:?}: {said}");
            assert!(said["seconds"].as_f64().unwrap() >= 0.06, "{kind:?}: {said}");
        }
    }

    /// A party that never gets the token.
    struct Hang;

    impl End for Hang {
        fn give(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn take(&mut self) -> io::Result<()> {
            loop {
                thread::park();
            }
        }
    }

    #[test]
    fn a_hanging_loop_is_left_behind_at_the_limit() {
        let shared = Arc::new(Shared {
            loops: Line::default(),
            stop: Line::default(),
            turn: Line::default(),
            deadline: Instant::now() + Duration::from_secs(1),
        });
        shared.loops.0.store(3, Ordering::Relaxed);
        let start = Arc::new(Barrier::new(3));
        let (sender, receiver) = mpsc::channel();
        let table = Table { shared: Arc::clone(&shared), start: Arc::clone(&start), sender, cpus: CpuSet::new() };
        let _handles = table.seat(Hang, Hang);
        start.wait();
        let said = watch(&shared, &receiver, (Instant::now(), Duration::from_millis(10))).unwrap();
        assert_eq!(said["loops"], 3);
        assert_eq!(said["cpus"], "? ?");
        assert_eq!(said["ended"], "a party hung at the limit");
    }
}
