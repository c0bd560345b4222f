//! Built-in loads beside the programs the field uses for the same: `net_stream` and iperf3, `disk_read` and fio,
//! `timer_jitter` and cyclictest, each with the same parameters, in turns, on the machine at hand.
//!
//! `cargo bench --bench loads -- [ROUNDS] [FOLDER]` prints a table of ratios. Both programs of a pair run in each round, the
//! first one alternating, so that a machine that gets slower does so for both. `IRQLAB=PATH` measures an irqlab that is
//! built already.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// How long each program measures.
const SECONDS: u32 = 2;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let rounds = arguments.first().and_then(|word| word.parse().ok()).unwrap_or(9);
    let folder = PathBuf::from(arguments.get(1).map_or(env!("CARGO_TARGET_TMPDIR"), String::as_str));
    let file = folder.join("irqlab-bench-data");
    // 64 MiB without holes.
    std::fs::write(&file, vec![b'x'; 64 << 20]).expect("the folder takes a file");
    println!("{rounds} rounds of {SECONDS} s each\n");
    println!("| load | unit | irqlab | the other | ratio: median, lowest to highest |");
    println!("| --- | --- | ---: | ---: | ---: |");
    for pair in pairs(&file) {
        pair.compare(rounds);
    }
    let _ = std::fs::remove_file(&file);
}

type Measure = Box<dyn Fn() -> Option<f64>>;

struct Pair {
    name: &'static str,
    unit: &'static str,
    ours: Measure,
    other: Measure,
}

impl Pair {
    fn compare(&self, rounds: usize) {
        let mut values: Vec<(f64, f64)> = Vec::new();
        for round in 0..rounds {
            let pair = if round % 2 == 0 {
                (self.ours)().zip((self.other)())
            } else {
                (self.other)().zip((self.ours)()).map(|(other, ours)| (ours, other))
            };
            let Some(pair) = pair else {
                println!("| {} | skipped: one of the programs did not run | | | |", self.name);
                return;
            };
            values.push(pair);
        }
        let sorted = |pick: fn(&(f64, f64)) -> f64| {
            let mut sorted: Vec<f64> = values.iter().map(pick).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        };
        let (ours, other, ratio) = (sorted(|pair| pair.0), sorted(|pair| pair.1), sorted(|pair| pair.0 / pair.1));
        let middle = values.len() / 2;
        let (low, high) = (ratio[0], ratio[values.len() - 1]);
        println!(
            "| {} | {} | {:.1} | {:.1} | {:.2}, {low:.2} to {high:.2} |",
            self.name, self.unit, ours[middle], other[middle], ratio[middle]
        );
    }
}

fn pairs(file: &Path) -> Vec<Pair> {
    let time = format!("for={SECONDS}s");
    let stream = |arguments: &'static [&'static str]| {
        let time = time.clone();
        Box::new(move || irqlab(&[], &[&["net_stream", "size=128KiB", &time], arguments].concat(), "throughput"))
    };
    let disk = |arguments: &'static [&'static str], metric: &'static str| {
        let (time, path) = (time.clone(), format!("path={}", file.display()));
        let region = "size=64MiB";
        Box::new(move || irqlab(&[], &[&["disk_read", region, &path, &time], arguments].concat(), metric))
    };
    let fio = |arguments: &'static [&'static str], metric: &'static str, scale: f64| {
        let file = file.to_owned();
        Box::new(move || fio(&file, arguments, metric).map(|value| value * scale))
    };
    let tick = time.clone();
    vec![
        Pair {
            name: "net_stream streams=1, iperf3",
            unit: "Mbit/s",
            ours: stream(&["streams=1"]),
            other: Box::new(|| iperf3(&["-P", "1"])),
        },
        Pair {
            name: "net_stream streams=1 direction=receive, iperf3 -R",
            unit: "Mbit/s",
            ours: stream(&["streams=1", "direction=receive"]),
            other: Box::new(|| iperf3(&["-P", "1", "-R"])),
        },
        Pair {
            name: "net_stream streams=4, iperf3 -P 4",
            unit: "Mbit/s",
            ours: stream(&["streams=4"]),
            other: Box::new(|| iperf3(&["-P", "4"])),
        },
        Pair {
            name: "disk_read random 4 KiB depth=1, fio psync",
            unit: "1/s",
            ours: disk(&["block=4KiB", "depth=1"], "iops"),
            other: fio(&["--rw=randread", "--bs=4k", "--numjobs=1"], "iops", 1.0),
        },
        Pair {
            name: "disk_read random 4 KiB depth=8, fio psync numjobs=8",
            unit: "1/s",
            ours: disk(&["block=4KiB", "depth=8"], "iops"),
            other: fio(&["--rw=randread", "--bs=4k", "--numjobs=8"], "iops", 1.0),
        },
        Pair {
            name: "disk_read sequential 128 KiB depth=1, fio psync",
            unit: "MB/s",
            ours: disk(&["block=128KiB", "depth=1", "pattern=sequential"], "throughput"),
            other: fio(&["--rw=read", "--bs=128k", "--numjobs=1"], "bw_bytes", 1e-6),
        },
        Pair {
            name: "timer_jitter mean at 1 ms, FIFO 80, cyclictest avg",
            unit: "us",
            ours: Box::new(move || irqlab(&["chrt", "-f", "80"], &["timer_jitter", "period=1ms", &tick], "mean")),
            other: Box::new(cyclictest),
        },
    ]
}

/// Standard output of a program that ended well.
fn output(words: &[&str]) -> Option<String> {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn irqlab(before: &[&str], arguments: &[&str], metric: &str) -> Option<f64> {
    let program = std::env::var("IRQLAB").unwrap_or_else(|_| env!("CARGO_BIN_EXE_irqlab").to_owned());
    let text = output(&[before, &[program.as_str(), "workload"], arguments].concat())?;
    serde_json::from_str::<Value>(&text).ok()?[metric].as_f64()
}

/// A process that is ended at the end of a round.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the receiver got, Mbit/s.
fn iperf3(arguments: &[&str]) -> Option<f64> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).ok()?.port().to_string();
    let mut server = Command::new("iperf3");
    server.args(["--server", "--one-off", "--forceflush", "--bind", "127.0.0.1", "--port", &port]);
    let mut server = Server(server.stdout(Stdio::piped()).spawn().ok()?);
    // It has a line or two before it listens.
    let lines = BufReader::new(server.0.stdout.take()?).lines().map_while(Result::ok);
    lines.take_while(|line| !line.contains("listening")).count();
    let time = SECONDS.to_string();
    let fixed = ["iperf3", "--client", "127.0.0.1", "--port", &port, "--json", "--length", "128K", "--time", &time];
    let text = output(&[&fixed[..], arguments].concat())?;
    let said: Value = serde_json::from_str(&text).ok()?;
    Some(said["end"]["sum_received"]["bits_per_second"].as_f64()? / 1e6)
}

fn fio(file: &Path, arguments: &[&str], metric: &str) -> Option<f64> {
    let (file, time) = (format!("--filename={}", file.display()), format!("--runtime={SECONDS}"));
    let fixed = ["fio", "--name=bench", "--readonly", "--direct=1", "--ioengine=psync", "--thread", "--time_based"];
    let more = ["--group_reporting", "--size=64M", "--output-format=json", &file, &time];
    let text = output(&[&fixed[..], &more[..], arguments].concat())?;
    let said: Value = serde_json::from_str(&text).ok()?;
    said["jobs"][0]["read"][metric].as_f64()
}

/// Average lateness, microseconds.
fn cyclictest() -> Option<f64> {
    let loops = (SECONDS * 1_000).to_string();
    let text =
        output(&["cyclictest", "--quiet", "--threads=1", "--interval=1000", "--priority=80", "--loops", &loops])?;
    let behind = text.lines().last()?.split_once("Avg:")?.1;
    behind.split_whitespace().next()?.parse().ok()
}
