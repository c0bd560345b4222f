//! The far end: listens, sends, counts and replies. Knows nothing of what is measured.
//!
//! `irqlab workload serve listen=ADDRESS[:PORT] for=1h` runs it on a host of its own. It says `listening on …` on
//! standard output when it does, and ends after that time.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::wire::{Counter, GREETING, Greeting, Kind, MAGIC, READING, REQUEST, Reading, Request};
use super::{MAX_MESSAGE, NetError, Phase, far, flow, start_thread};
use crate::workloads::WorkloadError;
use crate::workloads::arguments::{Arguments, bad, time};

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
        let endless = Phase::default();
        match kind {
            Kind::Control => {
                self.sessions(|sessions| sessions.insert(session, Vec::new()));
                let result = self.control(stream, session);
                self.sessions(|sessions| sessions.remove(&session));
                result
            }
            Kind::Sink => {
                let counter = Arc::new(Counter::default());
                let known = self.sessions(|sessions| {
                    sessions.get_mut(&session).map(|counters| counters.push(Arc::clone(&counter))).is_some()
                });
                if !known {
                    return Ok(());
                }
                stream.write_all(&MAGIC)?;
                flow::receive(stream, size, (&counter, &endless))
            }
            Kind::Source => {
                stream.write_all(&MAGIC)?;
                flow::send(stream, size, &endless)
            }
            Kind::Transact => {
                stream.write_all(&MAGIC)?;
                reply(stream, size)
            }
        }
    }

    fn sessions<T>(&self, act: impl FnOnce(&mut HashMap<u64, Vec<Arc<Counter>>>) -> T) -> T {
        act(&mut self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn control(&self, mut stream: TcpStream, session: u64) -> io::Result<()> {
        stream.write_all(&MAGIC)?;
        while stream.read_exact(&mut [0]).is_ok() {
            let bytes = self.sessions(|sessions| {
                sessions.get(&session).map_or(0, |counters| counters.iter().map(|counter| counter.get()).sum())
            });
            let ns = self.0.began.elapsed().as_nanos() as u64;
            stream.write_all(&Reading { ns, bytes }.to_bytes())?;
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
        if whole > size.min(MAX_MESSAGE as usize) as u64 || answer > size || have as u64 > whole {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.read_exact(&mut inbox[have..whole as usize])?;
        stream.write_all(&outbox[..answer])?;
    }
}
