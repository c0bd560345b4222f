//! The `irqlab` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let status = match arguments.split_first() {
        Some((command, _)) if command == "launch" => irqlab::run::launch::launch(),
        Some((command, [name, rest @ ..])) if command == "workload" => irqlab::workloads::run(name, rest),
        _ => 2,
    };
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}
