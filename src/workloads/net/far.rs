//! Where the far end is: what `to=` says, and connections to it.
//!
//! | `to` | the far end |
//! | --- | --- |
//! | `localhost`, a loopback address | threads of this process, over the loopback device |
//! | `netns:NAME` | threads of this process in that network namespace, at each address that shares a subnet with one here |
//! | `lab.host` | `netns:far`: the other ends of a lab's linked adapters |
//! | `HOST`, `HOST:PORT` | `irqlab workload serve`, started there by somebody |

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::thread;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sched::{CloneFlags, setns};

use super::serve::{PORT, Service};
use super::wire::{self, Greeting, MAGIC};
use super::{NetError, Protocol, SILENCE, allow_descriptors};

/// The namespace that holds the far ends of a lab's linked adapters.
pub(super) const LAB_NAMESPACE: &str = "far";

/// Files open besides connections, amply: the three standard ones, listeners, what was inherited.
const OTHER_FILES: usize = 40;

/// The far end, reachable at one address or more.
#[derive(Debug)]
pub(super) struct Far {
    endpoints: Vec<SocketAddr>,
}

/// What `to=` says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum To {
    Host(String, u16),
    Loopback(IpAddr),
    Namespace(String),
}

impl Far {
    /// Looks it up for that many connections, and starts the far end where that is ours to do.
    pub(super) fn reach(to: &str, (connections, protocol): (usize, Protocol)) -> Result<Self, NetError> {
        let to = To::read(to);
        let ends = if matches!(to, To::Host(..)) { 1 } else { 2 };
        let sockets = match protocol {
            Protocol::Tcp => 1,
            Protocol::Udp => 2,
        };
        allow_descriptors((ends * sockets * connections + OTHER_FILES) as u64)?;
        let endpoints = match to {
            To::Host(host, port) => vec![look_up(host, port)?],
            To::Loopback(address) => Service::default().start(None, &[address])?,
            To::Namespace(name) => {
                let there = addresses_in(&name)?;
                let here = addresses().map_err(|source| NetError::Namespace { name: name.clone(), source })?;
                let shared = shared(&here, &there);
                if shared.is_empty() {
                    return Err(NetError::NoSharedSubnet { name });
                }
                Service::default().start(Some(&name), &shared)?
            }
        };
        Ok(Far { endpoints })
    }

    /// Connection `number`; connections go round robin over the addresses.
    pub(super) fn connect(&self, number: usize, greeting: Greeting) -> Result<TcpStream, NetError> {
        let address = self.endpoints[number % self.endpoints.len()];
        let stream = TcpStream::connect_timeout(&address, SILENCE);
        let mut stream = stream.map_err(|source| NetError::Connect { address, source })?;
        let mut answer = [0; MAGIC.len()];
        let greeted = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(SILENCE)))
            .and_then(|()| stream.set_write_timeout(Some(SILENCE)))
            .and_then(|()| stream.write_all(&greeting.to_bytes()))
            .and_then(|()| stream.read_exact(&mut answer));
        match greeted {
            Ok(()) if answer == MAGIC => Ok(stream),
            Ok(()) => Err(NetError::NotOurs { address }),
            // It hung up on our greeting.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(NetError::NotOurs { address }),
            Err(error) => Err(NetError::of(address)(error)),
        }
    }

    /// Connection `number` for datagrams: the TCP connection, which has to stay open, and the socket.
    pub(super) fn connect_udp(&self, number: usize, greeting: Greeting) -> Result<(TcpStream, UdpSocket), NetError> {
        let mut stream = self.connect(number, greeting)?;
        let address = self.endpoints[number % self.endpoints.len()];
        let mut port = [0; 8];
        let socket = stream.read_exact(&mut port).and_then(|()| {
            let socket = UdpSocket::bind(SocketAddr::new(stream.local_addr()?.ip(), 0))?;
            socket.connect(SocketAddr::new(address.ip(), wire::number(&port) as u16))?;
            Ok(socket)
        });
        Ok((stream, socket.map_err(NetError::of(address))?))
    }

    /// The addresses, for the recording.
    pub(super) fn addresses(&self) -> String {
        let addresses: Vec<String> = self.endpoints.iter().map(|endpoint| endpoint.ip().to_string()).collect();
        addresses.join(" ")
    }
}

impl To {
    fn read(text: &str) -> Self {
        if text == "lab.host" {
            return To::Namespace(LAB_NAMESPACE.to_owned());
        }
        if let Some(name) = text.strip_prefix("netns:") {
            return To::Namespace(name.to_owned());
        }
        if text == "localhost" {
            return To::Loopback(Ipv4Addr::LOCALHOST.into());
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return if address.is_loopback() { To::Loopback(address) } else { To::Host(text.to_owned(), PORT) };
        }
        let port = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = port.unwrap_or((text, PORT));
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        To::Host(bare.to_owned(), port)
    }
}

fn look_up(host: String, port: u16) -> Result<SocketAddr, NetError> {
    let found = (host.as_str(), port).to_socket_addrs().map(|mut found| found.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(NetError::NoHost { host, source: io::Error::other("it has no address") }),
        Err(source) => Err(NetError::NoHost { host, source }),
    }
}

/// An address and the length of its subnet's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Local {
    address: IpAddr,
    prefix: u32,
}

impl Local {
    fn bits(self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    fn shares_subnet_with(self, other: Self) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
            && self.prefix == other.prefix
            && self.address != other.address
            && (self.bits() ^ other.bits()).leading_zeros() >= self.prefix
    }
}

/// Addresses of `there` on a wire with one of `here`, in numeric order.
fn shared(here: &[Local], there: &[Local]) -> Vec<IpAddr> {
    let reached = |far: &&Local| here.iter().any(|near| near.shares_subnet_with(**far));
    let mut reached: Vec<IpAddr> = there.iter().filter(reached).map(|far| far.address).collect();
    reached.sort_unstable();
    reached
}

/// Addresses of interfaces of the calling thread's namespace that are up, without loopback and link-local ones.
fn addresses() -> io::Result<Vec<Local>> {
    let mut found = Vec::new();
    for interface in getifaddrs()? {
        let up = interface.flags.contains(InterfaceFlags::IFF_UP);
        if !up || interface.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
            continue;
        }
        let (Some(address), Some(mask)) = (interface.address, interface.netmask) else { continue };
        if let (Some(address), Some(mask)) = (address.as_sockaddr_in(), mask.as_sockaddr_in()) {
            found.push(Local { address: address.ip().into(), prefix: mask.ip().to_bits().leading_ones() });
        } else if let (Some(address), Some(mask)) = (address.as_sockaddr_in6(), mask.as_sockaddr_in6())
            && !address.ip().is_unicast_link_local()
        {
            found.push(Local { address: address.ip().into(), prefix: mask.ip().to_bits().leading_ones() });
        }
    }
    Ok(found)
}

/// Moves the calling thread, and threads it makes later, into a namespace made by `ip netns add`.
pub(super) fn enter(name: &str) -> Result<(), NetError> {
    let fault = |source| NetError::Namespace { name: name.to_owned(), source };
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(fault(io::Error::other("not a name of `ip netns`")));
    }
    let file = File::open(format!("/run/netns/{name}")).map_err(fault)?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| fault(error.into()))
}

fn addresses_in(name: &str) -> Result<Vec<Local>, NetError> {
    let fault = |source| NetError::Namespace { name: name.to_owned(), source };
    // A thread of its own: this one stays where it is.
    let look = || enter(name).and_then(|()| addresses().map_err(fault));
    thread::scope(|scope| scope.spawn(look).join()).unwrap_or_else(|_| Err(fault(io::Error::other("the look failed"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_far_end_is_read_as_a_person_means_it() {
        let host = |name: &str, port| To::Host(name.to_owned(), port);
        let cases = [
            ("lab.host", To::Namespace("far".to_owned())),
            ("netns:blue", To::Namespace("blue".to_owned())),
            ("localhost", To::Loopback([127, 0, 0, 1].into())),
            ("127.0.0.2", To::Loopback([127, 0, 0, 2].into())),
            ("::1", To::Loopback(std::net::Ipv6Addr::LOCALHOST.into())),
            ("localhost:5000", host("localhost", 5000)),
            ("10.0.0.7", host("10.0.0.7", PORT)),
            ("10.0.0.7:80", host("10.0.0.7", 80)),
            ("[fe80::1]:80", host("fe80::1", 80)),
            ("[2001:db8::1]", host("2001:db8::1", PORT)),
            ("2001:db8::1", host("2001:db8::1", PORT)),
            ("box.example", host("box.example", PORT)),
        ];
        for (text, meant) in cases {
            assert_eq!(To::read(text), meant, "{text}");
        }
    }

    #[test]
    fn only_addresses_on_one_wire_are_paired() {
        let local = |text: &str, prefix| Local { address: text.parse().unwrap(), prefix };
        let here = [local("10.77.0.1", 24), local("10.77.1.1", 24), local("192.168.0.2", 16), local("fd00::1", 64)];
        let there = [
            local("10.77.1.2", 24),
            local("10.77.0.2", 24),
            local("10.77.2.2", 24),
            local("10.77.0.3", 25),
            local("192.168.0.2", 16),
            local("fd00::2", 64),
            local("fd00:0:0:1::2", 64),
        ];
        let shared: Vec<String> = shared(&here, &there).iter().map(IpAddr::to_string).collect();
        assert_eq!(shared, ["10.77.0.2", "10.77.1.2", "fd00::2"]);
    }
}
