//! The `irqlab` program.

fn main() -> std::process::ExitCode {
    irqlab::cli::run()
}
