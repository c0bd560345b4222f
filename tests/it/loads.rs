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
fn datagrams_that_arrive_and_those_that_do_not_are_counted() {
    for direction in ["direction=send", "direction=receive"] {
        let said = said("net_stream", &["for=100ms", "streams=2", "size=1000B", "protocol=udp", direction]);
        let bytes = number(&said, "bytes");
        assert!(bytes > 0.0 && bytes % 1000.0 == 0.0, "whole datagrams: {said}");
        // Nothing slows a sender down to its receiver: what finds no room is lost, and is counted by the numbers of
        // what came later.
        let (lost, missing) = (number(&said, "lost"), number(&said, "lost_datagrams"));
        let share = 100.0 * missing / (missing + bytes / 1000.0);
        assert!((lost - share).abs() < 1e-9 && lost < 100.0, "{share}: {said}");
    }
    let said = said("net_transact", &["for=100ms", "clients=3", "receive=60%", "size=1000B", "protocol=udp"]);
    let (reads, writes) = (number(&said, "reads"), number(&said, "writes"));
    assert!(reads > 0.0 && writes > 0.0, "{said}");
    assert_eq!((number(&said, "received_bytes") - (reads * 1000.0 + writes * 8.0)).to_bits(), 0, "{said}");
    let lost = 100.0 * number(&said, "lost_transactions") / (reads + writes + number(&said, "lost_transactions"));
    assert!((number(&said, "lost") - lost).abs() < 1e-9, "{said}");
}

/// Each of 600 clients has two descriptors, its own and the far end's; shells start with a limit of 1024.
#[test]
fn more_clients_than_the_usual_limit_of_open_files_are_served() {
    let limited = |hard: &str| {
        let program = env!("CARGO_BIN_EXE_irqlab");
        let text = format!("ulimit -S -n 1024; {hard} exec {program} workload net_transact clients=600 for=50ms");
        Command::new("/bin/sh").args(["-c", &text]).output().expect("a shell starts")
    };
    let hard = Command::new("/bin/sh").args(["-c", "ulimit -H -n"]).output().unwrap();
    if String::from_utf8_lossy(&hard.stdout).trim().parse::<u64>().is_ok_and(|hard| hard < 1_400) {
        return skip("the hard limit of open files is too low for 600 clients");
    }
    let output = limited("");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = refusal(&limited("ulimit -H -n 1024;"));
    assert!(said.contains("1240 file descriptors are needed and 1024 allowed: raise `ulimit -n`"), "{said}");
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
    let cases = [
        ("net_stream", "direction=send", "protocol=tcp"),
        ("net_stream", "direction=receive", "protocol=tcp"),
        ("net_stream", "direction=send", "protocol=udp"),
        ("net_stream", "direction=receive", "protocol=udp"),
        ("net_transact", "clients=2", "protocol=tcp"),
        ("net_transact", "clients=2", "protocol=udp"),
    ];
    for (name, argument, protocol) in cases {
        let (server, address) = serve();
        let mut client = workload(name, &["for=1min", "size=1KiB", argument, protocol, &format!("to={address}")]);
        let client = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut client = Ended(client);
        // It starts its threads when all connections are made.
        let threads = format!("/proc/{}/task", client.0.id());
        let deadline = Instant::now() + Duration::from_secs(30);
        while fs::read_dir(&threads).expect("the client runs").count() < 2 {
            assert!(Instant::now() < deadline, "{name} {argument} {protocol}: not connected in 30 s");
            thread::yield_now();
        }
        drop(server);
        let status = client.0.wait().unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        client.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        client.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((status.code(), stdout.as_str()), (Some(1), ""), "{name} {argument} {protocol}");
        assert!(stderr.contains(&format!("the far end {address} went away")), "{name} {argument} {protocol}: {stderr}");
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
    let cases: [(&str, &[&str], &str); 13] = [
        ("disk_read", &["for=1s"], "`disk_read` needs `path=…`"),
        ("disk_read", &["path=/", "block=1000B"], "`block=1000B`: expected a size from `512B`"),
        ("disk_read", &["path=/", "size=4KiB", "block=8KiB"], "`size=4096B`: expected one block or more"),
        ("net_stream", &["protocol=udp"], "`size=65536B`: expected at most `65507B` with `protocol=udp`"),
        ("timer_jitter", &["period=1us"], "`period=1000ns`: expected 10us or more"),
        ("timer_jitter", &["period=1s", "for=10ms"], "`for=10ms`: expected one period or more"),
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

/// A folder on a disk; the one of temporary files may be in memory.
fn folder_on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// What `disk_read` of 64 blocks has said; `None` where nothing can be read directly.
fn read_disk(path: &str, arguments: &[&str]) -> Option<Value> {
    let path = format!("path={path}");
    let output = output("disk_read", &[&[path.as_str(), "for=100ms", "size=256KiB"], arguments].concat());
    if !output.status.success() {
        let why = refusal(&output);
        assert!(why.contains("in memory") || why.contains("direct reads"), "{why}");
        skip(&format!("no direct reads below the build folder: {why}"));
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

#[test]
fn a_folder_is_read_through_a_file_that_does_not_stay() {
    let folder = folder_on_disk();
    for pattern in ["pattern=random", "pattern=sequential"] {
        let Some(said) = read_disk(&folder.path().to_string_lossy(), &[pattern, "depth=4", "block=4KiB"]) else {
            return;
        };
        assert_eq!(said["region_bytes"], 256 << 10, "{pattern}");
        let (reads, seconds) = (number(&said, "reads"), number(&said, "seconds"));
        assert!(reads > 0.0, "{pattern}: {said}");
        assert!((number(&said, "iops") * seconds / reads - 1.0).abs() < 1e-9, "{said}");
        assert!((number(&said, "throughput") * seconds / (reads * 4096.0 / 1e6) - 1.0).abs() < 1e-9, "{said}");
        let latencies = ["latency_p50", "latency_p99", "latency_max"].map(|name| number(&said, name));
        assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the file is gone");
}

#[test]
fn a_file_that_is_there_is_read_and_left_as_it_was() {
    let folder = folder_on_disk();
    let path = folder.path().join("data");
    let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    fs::write(&path, &bytes).unwrap();
    let Some(said) = read_disk(&path.to_string_lossy(), &["block=4KiB"]) else { return };
    // 24 whole blocks; the rest at the end is none.
    assert_eq!(said["region_bytes"], 24 * 4096);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // The kernel's own count: what was read came from the disk and not out of the page cache.
    let reader = workload("disk_read", &[&format!("path={}", path.display()), "for=1min"]).spawn().unwrap();
    let reader = Ended(reader);
    let counted = || {
        let text = fs::read_to_string(format!("/proc/{}/io", reader.0.id())).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse::<u64>().ok()).unwrap_or_default()
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while counted() < 10 * 24 * 4096 {
        assert!(Instant::now() < deadline, "the kernel counts {} bytes read in 30 s", counted());
        thread::yield_now();
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = folder_on_disk();
    let missing = folder.path().join("missing");
    let said = refusal(&output("disk_read", &[&format!("path={}", missing.display())]));
    assert!(said.contains("name a file, a block device, or a folder"), "{said}");
    let short = folder.path().join("short");
    fs::write(&short, [0; 100]).unwrap();
    let said = refusal(&output("disk_read", &[&format!("path={}", short.display())]));
    assert!(said.contains("has 100 bytes, less than one block of 4096"), "{said}");
    let said = refusal(&output("disk_read", &["path=/dev/null"]));
    assert!(said.contains("is not a file, a folder or a block device"), "{said}");
}

#[test]
fn every_due_wake_up_is_counted_once() {
    let said = said("timer_jitter", &["period=2ms", "for=100ms"]);
    assert_eq!(said["wakeups"], 50);
    let lateness = ["p50", "p99", "max"].map(|name| number(&said, name));
    assert!(lateness[0] >= 0.0 && lateness.is_sorted(), "{said}");
    let mean = number(&said, "mean");
    assert!(0.0 < mean && mean <= lateness[2], "{said}");
}

/// Stopped for 400 ms with a period of 10 ms, some 40 wake-ups are late, by 200 ms on average. A counter that skips those
/// that have passed would see one.
#[test]
fn a_stall_makes_every_wake_up_in_it_late() {
    let child = workload("timer_jitter", &["period=10ms", "for=2s"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = Ended(child);
    let status = format!("/proc/{}/status", child.0.id());
    let sleeps = || {
        let text = fs::read_to_string(&status).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    while sleeps() < 20 {
        thread::yield_now();
    }
    let signal = |name: &str| Command::new("kill").args([name, &child.0.id().to_string()]).status().unwrap().success();
    assert!(signal("-STOP"), "it can be stopped");
    thread::sleep(Duration::from_millis(400));
    assert!(signal("-CONT"), "it can go on");
    let mut text = String::new();
    child.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(said["wakeups"], 200);
    assert!(number(&said, "max") > 300e3, "{said}");
    assert!(number(&said, "mean") > 20e3, "{said}");
}
