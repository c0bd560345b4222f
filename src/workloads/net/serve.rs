//! The far end: listens, sends, counts and replies. Knows nothing of what is measured.
//!
//! `irqlab workload serve listen=ADDRESS[:PORT] for=1h` runs it on a host of its own. It says `listening on …` on
//! standard output when it does, and ends after that time.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::wire::{Counter, GREETING, Greeting, Kind, MAGIC, READING, REQUEST, Reading, Request};
use super::{MAX_DATAGRAM, NetError, allow_descriptors, far, flow, start_thread};
use crate::workloads::WorkloadError;
use crate::workloads::arguments::{Arguments, bad, time};
use crate::workloads::phase::Phase;

/// Where it listens when no port is named.
pub(super) const PORT: u16 = 47_047;

/// How long a client may take to greet.
const GREETING_TIME: Duration = Duration::from_secs(10);

/// Runs it: `listen` and `for`.
pub(in crate::workloads) fn run(given: &[(String, String)]) -> Result<Value, WorkloadError> {
    let mut arguments = Arguments::new("serve", given);
    let listen = arguments.required("listen")?;
    let limit = arguments.read("for", "1h", time)?;
    arguments.end()?;
    let expected = "an address of this host, with or without a port: `192.168.0.7`, `[fd00::7]:5000`";
    let address = listen.parse().or_else(|_| listen.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)));
    let address: SocketAddr = address.map_err(|_| bad("listen", listen, expected))?;
    allow_descriptors(0)?;
    let service = Service::default();
    let listener = listen_at(address)?;
    let address = listener.local_addr().map_err(|source| NetError::Listen { address, source })?;
    let accepting = service.clone();
    start_thread(0, move || accepting.accept(&listener))?;
    println!("listening on {address}");
    io::stdout().flush().map_err(|source| WorkloadError::Kernel { what: "writing", advice: None, source })?;
    thread::sleep(limit);
    Ok(json!({ "connections": service.0.connections.load(Ordering::Relaxed) }))
}

/// The far end of any number of clients.
#[derive(Debug, Clone, Default)]
pub(super) struct Service(Arc<State>);

#[derive(Debug)]
struct State {
    began: Instant,
    connections: AtomicU64,
    sessions: Mutex<HashMap<u64, Vec<Arc<Counter>>>>,
}

impl Default for State {
    fn default() -> Self {
        State { began: Instant::now(), connections: AtomicU64::new(0), sessions: Mutex::default() }
    }
}

fn listen_at(address: SocketAddr) -> Result<TcpListener, NetError> {
    TcpListener::bind(address).map_err(|source| NetError::Listen { address, source })
}

impl Service {
    /// Listens at each address, at a port the kernel chooses, in a namespace or in this one.
    pub(super) fn start(&self, namespace: Option<&str>, addresses: &[IpAddr]) -> Result<Vec<SocketAddr>, NetError> {
        addresses.iter().enumerate().map(|(number, address)| self.start_one(namespace, *address, number)).collect()
    }

    fn start_one(&self, namespace: Option<&str>, address: IpAddr, number: usize) -> Result<SocketAddr, NetError> {
        let (sender, receiver) = mpsc::channel();
        let (service, namespace) = (self.clone(), namespace.map(str::to_owned));
        // The namespace is the thread's: its listener, and the threads it makes, are in it.
        start_thread(number, move || {
            let wanted = SocketAddr::new(address, 0);
            let listening = namespace.map_or(Ok(()), |name| far::enter(&name)).and_then(|()| {
                let listener = listen_at(wanted)?;
                let address = listener.local_addr().map_err(|source| NetError::Listen { address: wanted, source })?;
                Ok((listener, address))
            });
            match listening {
                Ok((listener, address)) => {
                    if sender.send(Ok(address)).is_ok() {
                        service.accept(&listener);
                    }
                }
                // Nobody waits for it any more when it cannot be sent.
                Err(error) => drop(sender.send(Err(error))),
            }
        })?;
        let gone = |_| NetError::Thread { number, source: io::Error::other("it ended at once") };
        receiver.recv().map_err(gone)?
    }

    fn accept(&self, listener: &TcpListener) {
        for (number, stream) in (1..).zip(listener.incoming()) {
            // `accept(2)` fails for a connection that is gone again, or for want of descriptors.
            let Ok(stream) = stream else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            self.0.connections.fetch_add(1, Ordering::Relaxed);
            let service = self.clone();
            // A client whose connection is dropped says so; ends of connections are not ours to report.
            let _ = start_thread(number, move || drop(service.converse(stream)));
        }
    }

    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut greeting = [0; GREETING];
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GREETING_TIME))?;
        stream.read_exact(&mut greeting)?;
        stream.set_read_timeout(None)?;
        let Some(Greeting { kind, session, size }) = Greeting::from_bytes(&greeting) else { return Ok(()) };
        let phase = Arc::new(Phase::default());
        match kind {
            Kind::Control => {
                self.sessions(|sessions| sessions.insert(session, Vec::new()));
                let result = self.control(stream, session);
                self.sessions(|sessions| sessions.remove(&session));
                result
            }
            Kind::Sink => {
                let Some(counter) = self.counter(session) else { return Ok(()) };
                stream.write_all(&MAGIC)?;
                flow::receive(stream, size, (&counter, &phase))
            }
            Kind::Source => {
                stream.write_all(&MAGIC)?;
                flow::send(stream, size, &phase)
            }
            Kind::Transact => {
                stream.write_all(&MAGIC)?;
                reply(stream, size)
            }
            Kind::UdpSink => {
                let Some(counter) = self.counter(session) else { return Ok(()) };
                let socket = meet(stream, &phase)?;
                flow::receive_datagrams(&socket, (&counter, &phase), None)
            }
            Kind::UdpSource => {
                let socket = meet(stream, &phase)?;
                flow::send_datagrams(&socket, size.min(MAX_DATAGRAM), &phase)
            }
            Kind::UdpTransact => reply_datagrams(&meet(stream, &phase)?, &phase),
        }
    }

    /// A counter of that session; `None` when there is none.
    fn counter(&self, session: u64) -> Option<Arc<Counter>> {
        let counter = Arc::new(Counter::default());
        let add = |counters: &mut Vec<Arc<Counter>>| counters.push(Arc::clone(&counter));
        self.sessions(|sessions| sessions.get_mut(&session).map(add))?;
        Some(counter)
    }

    fn sessions<T>(&self, act: impl FnOnce(&mut HashMap<u64, Vec<Arc<Counter>>>) -> T) -> T {
        act(&mut self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn control(&self, mut stream: TcpStream, session: u64) -> io::Result<()> {
        stream.write_all(&MAGIC)?;
        while stream.read_exact(&mut [0]).is_ok() {
            let reading = self.sessions(|sessions| {
                let counters = sessions.get(&session).into_iter().flatten();
                Reading::of(self.0.began, counters.map(AsRef::as_ref))
            });
            stream.write_all(&reading.to_bytes())?;
        }
        Ok(())
    }
}

/// Asks over a control connection what has been received.
pub(super) fn ask(mut control: &TcpStream) -> io::Result<Reading> {
    let mut reading = [0; READING];
    control.write_all(&[0])?;
    control.read_exact(&mut reading)?;
    Ok(Reading::from_bytes(&reading))
}

/// Answers transactions until the client is gone.
fn reply(mut stream: TcpStream, size: usize) -> io::Result<()> {
    let mut inbox = vec![0; size];
    let outbox = vec![0; size];
    loop {
        let mut have = 0;
        while have < REQUEST {
            match stream.read(&mut inbox[have..])? {
                0 => return Ok(()),
                length => have += length,
            }
        }
        let request = Request::from_bytes(&inbox);
        let (whole, answer) = (u64::from(request.more) + REQUEST as u64, request.reply as usize);
        if whole > size as u64 || answer > size || have as u64 > whole {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.read_exact(&mut inbox[have..whole as usize])?;
        stream.write_all(&outbox[..answer])?;
    }
}

/// A socket for datagrams with the client of that connection, and with nobody else. The phase is over when the connection
/// is.
fn meet(mut stream: TcpStream, phase: &Arc<Phase>) -> io::Result<UdpSocket> {
    let (here, there) = (stream.local_addr()?, stream.peer_addr()?);
    let socket = UdpSocket::bind(SocketAddr::new(here.ip(), 0))?;
    stream.write_all(&MAGIC)?;
    stream.write_all(&u64::from(socket.local_addr()?.port()).to_le_bytes())?;
    socket.set_read_timeout(Some(flow::DATAGRAM_TIME))?;
    let over = Arc::clone(phase);
    let watch = move || {
        // The client says nothing more; this returns when it is gone.
        let _ = stream.read(&mut [0]);
        over.set(Phase::OVER);
    };
    start_thread(0, watch).map_err(io::Error::other)?;
    while phase.get() != Phase::OVER {
        match socket.peek_from(&mut [0; REQUEST]) {
            Ok((_, from)) if from.ip() == there.ip() => {
                socket.connect(from)?;
                break;
            }
            // Somebody else's.
            Ok(_) => drop(socket.recv_from(&mut [0])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(socket)
}

/// Answers requests that come in datagrams.
fn reply_datagrams(socket: &UdpSocket, phase: &Phase) -> io::Result<()> {
    let mut inbox = vec![0; MAX_DATAGRAM];
    let mut outbox = vec![0; MAX_DATAGRAM];
    while phase.get() != Phase::OVER {
        let length = match socket.recv(&mut inbox) {
            Ok(length) => length,
            Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind()) => continue,
            Err(error) => return Err(error),
        };
        if length < REQUEST {
            continue;
        }
        let answer = (Request::from_bytes(&inbox).reply as usize).clamp(REQUEST, MAX_DATAGRAM);
        outbox[..REQUEST].copy_from_slice(&inbox[..REQUEST]);
        // A reply that cannot be sent is a lost one, which the client notices.
        let _ = socket.send(&outbox[..answer]);
    }
    Ok(())
}
