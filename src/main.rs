//! The `irqlab` program.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
