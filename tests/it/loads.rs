//! Built-in workloads as a trial starts them: real processes on loopback and across network namespaces. What is
//! asserted is accounting and what is said when something is missing, never a speed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::probe::skip;

fn workload(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_irqlab"));
    command.args(["workload", name]).args(arguments).stdin(Stdio::null());
    command
}

fn output(name: &str, arguments: &[&str]) -> Output {
    workload(name, arguments).output().expect("irqlab starts")
}

/// What a workload that ran has said.
#[track_caller]
fn said(name: &str, arguments: &[&str]) -> Value {
    let output = output(name, arguments);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// What a workload that could not run has said: nothing where numbers are expected.
#[track_caller]
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn number(said: &Value, name: &str) -> f64 {
    said[name].as_f64().unwrap_or_else(|| panic!("`{name}` is a number in {said}"))
}

/// A process that is ended when the test is.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `irqlab workload serve` at a port the kernel chose, and its address.
fn serve() -> (Ended, String) {
    let mut child = workload("serve", &["listen=127.0.0.1:0", "for=1min"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").expect("it says where").to_owned();
    (Ended(child), address)
}

#[test]
fn a_stream_counts_what_its_receiver_got() {
    for direction in ["direction=send", "direction=receive"] {
        let said = said("net_stream", &["for=100ms", "streams=3", "size=4KiB", direction]);
        let (bytes, seconds) = (number(&said, "bytes"), number(&said, "seconds"));
        let rate = bytes * 8.0 / 1e6 / seconds;
        assert!((number(&said, "throughput") / rate - 1.0).abs() < 1e-9, "{direction}: {said}");
        assert!(bytes > 0.0 && seconds >= 0.1, "{direction}: {said}");
        assert_eq!(said["addresses"], "127.0.0.1");
    }
}

#[test]
fn every_byte_of_a_transaction_is_accounted_for() {
    let said = said("net_transact", &["for=200ms", "clients=44", "receive=60%", "size=1000B"]);
    let count = |name| said[name].as_u64().unwrap_or_else(|| panic!("`{name}` is a count in {said}"));
    let (reads, writes) = (count("reads"), count("writes"));
    assert_eq!(count("received_bytes"), reads * 1000 + writes * 8);
    assert_eq!(count("sent_bytes"), reads * 8 + writes * 1000);
    let seconds = number(&said, "seconds");
    assert!((number(&said, "transactions") * seconds / (reads + writes) as f64 - 1.0).abs() < 1e-9);
    let megabits = (count("received_bytes") + count("sent_bytes")) as f64 * 8.0 / 1e6;
    assert!((number(&said, "throughput") * seconds / megabits - 1.0).abs() < 1e-9);
    // Of each client: one message where the measured time begins, and one where it ends.
    let received = count("received_bytes") as f64;
    let off = (received - 0.6 * (received + count("sent_bytes") as f64)).abs();
    assert!(off <= 44.0 * 2.0 * 1000.0, "{off} bytes off: {said}");
    let latencies = ["latency_p50", "latency_p99", "latency_max"].map(|name| number(&said, name));
    assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{said}");
}

#[test]
fn a_far_end_started_by_somebody_serves_many_clients_in_turn() {
    let (_server, address) = serve();
    let to = format!("to={address}");
    for _ in 0..2 {
        assert!(number(&said("net_stream", &["for=50ms", "streams=2", &to]), "bytes") > 0.0);
        assert!(number(&said("net_transact", &["for=50ms", "clients=2", &to]), "transactions") > 0.0);
    }
}

#[test]
fn a_far_end_that_goes_away_in_the_middle_is_an_error_and_not_a_number() {
    let cases = [("net_stream", "direction=send"), ("net_stream", "direction=receive"), ("net_transact", "clients=2")];
    for (name, argument) in cases {
        let (server, address) = serve();
        let mut client = workload(name, &["for=1min", argument, &format!("to={address}")]);
        let client = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut client = Ended(client);
        // The main thread, the one that listens, and two connections.
        let threads = format!("/proc/{}/task", server.0.id());
        let deadline = Instant::now() + Duration::from_secs(30);
        while fs::read_dir(&threads).expect("the server runs").count() < 4 {
            assert!(Instant::now() < deadline, "{name} {argument}: no two connections in 30 s");
            thread::yield_now();
        }
        drop(server);
        let status = client.0.wait().unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        client.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        client.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((status.code(), stdout.as_str()), (Some(1), ""), "{name} {argument}");
        assert!(stderr.contains(&format!("the far end {address} went away")), "{name} {argument}: {stderr}");
    }
}

#[test]
fn a_far_end_that_is_not_there_is_named_with_what_to_do() {
    // tcpmux, which nobody runs.
    let refused = refusal(&output("net_transact", &["to=127.0.0.1:1"]));
    assert!(
        refused.contains("nobody answers at 127.0.0.1:1") && refused.contains("irqlab workload serve"),
        "{refused}"
    );
    let unknown = refusal(&output("net_stream", &["to=no-such-host.invalid"]));
    assert!(unknown.contains("there is no host `no-such-host.invalid`"), "{unknown}");
    let namespace = refusal(&output("net_stream", &["to=netns:irqlab-no-such"]));
    assert!(namespace.contains("cannot enter the network namespace `irqlab-no-such`"), "{namespace}");
    let path = refusal(&output("net_stream", &["to=netns:../../proc/1/ns/net"]));
    assert!(path.contains("not a name of `ip netns`"), "{path}");
}

#[test]
fn another_service_at_the_port_is_not_taken_for_ours() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        // Held open until the client has gone: a reset must not overtake the answer.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let said = refusal(&output("net_stream", &[&format!("to={address}")]));
    assert!(said.contains(&format!("what listens at {address} is not `irqlab workload serve`")), "{said}");
    answering.join().unwrap();
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let cases: [(&str, &[&str], &str); 7] = [
        ("net_stream", &["for=0s"], "`for=0s`: expected a time"),
        ("net_stream", &["streams=0"], "`streams=0`: expected a whole number"),
        ("net_stream", &["size=4B"], "`size=4B`: expected a size from"),
        ("net_stream", &["direction=up"], "`direction=up`: expected send or receive"),
        ("net_transact", &["receive=101%"], "`receive=101%`: expected a share"),
        ("net_transact", &["clients=2", "colour=red"], "has no argument `colour`"),
        ("serve", &["listen=somewhere"], "`listen=somewhere`: expected an address of this host"),
    ];
    for (name, arguments, expected) in cases {
        let said = refusal(&output(name, arguments));
        assert!(said.contains(expected), "{name} {arguments:?}: {said}");
    }
}

/// A network namespace with two wires to this one, as in a lab with two linked adapters.
struct Wires {
    name: String,
    devices: [String; 2],
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {arguments}: {said}")) }
}

impl Wires {
    fn lay() -> Result<Self, String> {
        let number = std::process::id();
        let wires =
            Wires { name: format!("irqlab-{number}"), devices: [0, 1].map(|wire| format!("ilw{wire}p{number}")) };
        ip(&format!("netns add {}", wires.name))?;
        for (wire, device) in wires.devices.iter().enumerate() {
            let name = &wires.name;
            ip(&format!("link add {device} type veth peer name wire{wire} netns {name}"))?;
            // 198.18.0.0/15 is for benchmarks (RFC 2544).
            ip(&format!("address add 198.18.{wire}.1/24 dev {device}"))?;
            ip(&format!("link set {device} up"))?;
            ip(&format!("-n {name} address add 198.18.{wire}.2/24 dev wire{wire}"))?;
            ip(&format!("-n {name} link set wire{wire} up"))?;
        }
        Ok(wires)
    }

    fn bytes(&self, direction: &str) -> [u64; 2] {
        self.devices.each_ref().map(|device| {
            let path = format!("/sys/class/net/{device}/statistics/{direction}_bytes");
            fs::read_to_string(path).unwrap().trim().parse().unwrap()
        })
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        // The devices go with the namespace that holds their other ends.
        let _ = ip(&format!("netns delete {}", self.name));
    }
}

#[test]
fn connections_go_round_robin_over_all_wires_to_a_namespace() {
    let wires = match Wires::lay() {
        Ok(wires) => wires,
        Err(why) => return skip(&format!("network namespaces need root, `ip` and veth: {why}")),
    };
    let to = format!("to=netns:{}", wires.name);
    let (sent, received) = (wires.bytes("tx"), wires.bytes("rx"));
    let streamed = said("net_stream", &["for=100ms", "streams=4", &to]);
    assert_eq!(streamed["addresses"], "198.18.0.2 198.18.1.2");
    let more = |before: [u64; 2], after: [u64; 2]| [after[0] - before[0], after[1] - before[1]];
    let out = more(sent, wires.bytes("tx"));
    // The receiver cannot have got more than the kernel has carried.
    assert!((out[0] + out[1]) as f64 >= number(&streamed, "bytes"), "{out:?}: {streamed}");
    assert!(out.iter().all(|bytes| *bytes > 1_000_000), "both wires carry it: {out:?}");
    let back = more(received, wires.bytes("rx"));
    assert!(back[0] + back[1] < (out[0] + out[1]) / 10, "only acknowledgements come back: {back:?} of {out:?}");

    let (sent, received) = (wires.bytes("tx"), wires.bytes("rx"));
    let transacted = said("net_transact", &["for=100ms", "clients=6", "receive=100%", "size=32KiB", &to]);
    let (out, back) = (more(sent, wires.bytes("tx")), more(received, wires.bytes("rx")));
    assert!((back[0] + back[1]) as f64 >= number(&transacted, "received_bytes"), "{back:?}: {transacted}");
    assert!(back.iter().all(|bytes| *bytes > 100_000), "both wires carry it: {back:?}");
    assert!(out[0] + out[1] < (back[0] + back[1]) / 4, "requests are short: {out:?} against {back:?}");
}
