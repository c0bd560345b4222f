//! The command line. The only place that knows clap; prints data on stdout and talk on stderr.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

pub mod capture;
mod check;
mod compare;
mod exit;
mod export;
mod files;
mod fmt;
pub mod host;
mod inspect;
pub mod irqs;
mod lab;
mod new;
mod plan;
mod print;
mod progress;
mod report;
mod restore;
pub mod run;
mod select;
mod table;

pub use exit::Exit;

/// Declarative experiments on Linux interrupt routing.
#[derive(Debug, Parser)]
#[command(
    name = "irqlab",
    version,
    about = "Declarative experiments on Linux interrupt routing",
    long_about = "irqlab runs experiments on interrupt routing that are written down in .exp files: it sets affinity masks \
                  and everything around them, proves from the kernel's own counters that the setting was in force, \
                  measures, puts the host back, and says how sure one can be.",
    after_help = EXIT_CODES,
    arg_required_else_help = true,
    subcommand_required = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Examples:
  irqlab new first.exp && irqlab check first.exp
  irqlab plan first.exp              what would be done, and every write; needs no root
  sudo irqlab run first.exp          runs it; the report is in reports/<experiment>/README.md
  irqlab report reports --check      do the committed reports match their recordings?

Exit status:
  0  fine
  1  an expectation or a --check failed
  2  usage
  3  the file is wrong
  4  this host cannot do it
  5  the run failed, or the host could not be put back";

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a commented starter file
    #[command(after_help = "Examples:\n  irqlab new\n  irqlab new nic_queues.exp\n  irqlab new - | less")]
    New {
        /// Where to; an existing file is never overwritten; `-` is stdout
        #[arg(default_value = "experiment.exp")]
        file: PathBuf,
    },
    /// Say everything that is wrong with experiment files; needs no host
    #[command(after_help = "Examples:\n  irqlab check first.exp\n  irqlab check experiments")]
    Check {
        /// Files, or folders searched for .exp files
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        params: Params,
    },
    /// Bring experiment files into their canonical form
    #[command(after_help = "Examples:\n  irqlab fmt experiments\n  irqlab fmt --check experiments")]
    Fmt {
        /// Files, or folders searched for .exp files
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Change nothing; exit 1 when a file is not in canonical form
        #[arg(long)]
        check: bool,
    },
    /// Show treatments, order, every write with old and new value, and what cannot be moved; touches nothing
    #[command(after_help = "Examples:\n  irqlab plan first.exp\n  irqlab plan experiments --root captured-host")]
    Plan {
        #[command(flatten)]
        selection: Selection,
        /// Read the host from a folder made by `irqlab capture`
        #[arg(long, value_name = "DIR", default_value = "/")]
        root: PathBuf,
    },
    /// Run experiments and write their reports; puts the host back
    #[command(
        after_help = "Examples:\n  sudo irqlab run first.exp\n  sudo irqlab run experiments --only quickstart --out reports\n  \
                      sudo irqlab run first.exp --resume      goes on where an interrupted run stopped\n\n\
                      Ctrl-C ends the trial, puts the host back and keeps what was recorded."
    )]
    Run {
        #[command(flatten)]
        selection: Selection,
        /// Folder of the reports
        #[arg(long, value_name = "DIR", default_value = "reports")]
        out: PathBuf,
        /// Go on with an interrupted run
        #[arg(long)]
        resume: bool,
    },
    /// Make reports again from their recordings
    #[command(
        after_help = "Examples:\n  irqlab report reports\n  irqlab report reports/quickstart\n  irqlab report reports --check\n  \
                      irqlab report reports/quickstart --format html    one page to send or to print: report.html"
    )]
    Report {
        /// Recordings, or folders searched for recording.jsonl
        #[arg(default_value = "reports")]
        paths: Vec<PathBuf>,
        /// What to write
        #[arg(long, value_enum, default_value = "markdown")]
        format: report::Format,
        /// Change nothing; exit 1 when a report differs from what its recording renders to
        #[arg(long)]
        check: bool,
    },
    /// Lay two recordings of one experiment beside each other: another kernel, another machine, another day
    #[command(after_help = "Examples:\n  irqlab compare old/quickstart reports/quickstart\n\n\
                      Nobody randomised which trials went into which recording: a difference between them may come from \
                      anything that changed in between.")]
    Compare {
        /// The older recording, or its folder
        old: PathBuf,
        /// The newer one
        new: PathBuf,
    },
    /// Print a recording in the format of another tool
    #[command(after_help = "Examples:\n  irqlab export reports/quickstart --format csv > trials.csv\n  \
                      irqlab export reports/quickstart --format benchstat | benchstat -col /routing -")]
    Export {
        /// A recording, or its folder
        path: PathBuf,
        /// What to print
        #[arg(long, value_enum)]
        format: export::Format,
    },
    /// List interrupts: device, driver, mask, where they go, whether they can be moved
    #[command(after_help = "Examples:\n  irqlab irqs\n  irqlab irqs --all --json\n  irqlab irqs --root captured-host")]
    Irqs {
        /// Add the named rows (LOC, NMI, RES …)
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        host: HostOptions,
    },
    /// Show facts of the host, what would disturb an experiment, and the remedy
    #[command(after_help = "Examples:\n  irqlab host\n  irqlab host --json")]
    Host {
        #[command(flatten)]
        host: HostOptions,
    },
    /// Copy the kernel files that irqlab reads into a folder for --root; no names, serial numbers or addresses in it
    #[command(after_help = "Examples:\n  irqlab capture ./my-server && irqlab plan first.exp --root ./my-server")]
    Capture {
        /// A folder that does not exist yet, or is empty
        directory: PathBuf,
    },
    /// Say what labs need here
    Lab {
        #[command(subcommand)]
        command: lab::LabCommand,
    },
    /// Put the host back after a run that was killed
    #[command(after_help = "Works from the journal alone. A second call finds nothing to do.")]
    Restore,
    /// A built-in workload
    #[command(hide = true)]
    Workload {
        /// Its name
        name: String,
        /// key=value
        arguments: Vec<String>,
    },
    /// Runs what an order asks for inside a lab's machine
    #[command(hide = true)]
    Guest {
        /// The folder shared with the host
        shared: PathBuf,
    },
    /// Becomes the programs that make a lab's machine, and ends with the runner
    #[command(hide = true)]
    Guard {
        /// Process number of the runner
        runner: i32,
        /// Program and arguments
        #[arg(required = true, last = true)]
        words: Vec<OsString>,
    },
    /// Starts one workload for the runner, which speaks to it through stdin
    #[command(hide = true)]
    Launch,
}

/// Which experiments, with which parameters.
#[derive(Debug, Args)]
pub struct Selection {
    /// Files, or folders searched for .exp files
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only the experiment of that name; may be given several times
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Another seed for the order of trials
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Values for `param`
    #[command(flatten)]
    pub params: Params,
}

/// Values for `param`.
#[derive(Debug, Args)]
pub struct Params {
    /// Value of a `param`; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub set: Vec<(String, String)>,
}

#[derive(Debug, Args)]
struct HostOptions {
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    /// Read the host from a folder made by `irqlab capture`
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the program.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Fine.into() };
        }
    };
    dispatch(arguments.command)
}

/// The exit status of a process of ours; 1 for one that no status can hold.
fn status(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

fn dispatch(command: Command) -> ExitCode {
    let exit = match command {
        Command::New { file } => new::new(&file),
        Command::Check { paths, params } => check::check(&paths, &params.set),
        Command::Fmt { paths, check } => fmt::fmt(&paths, if check { fmt::Mode::Check } else { fmt::Mode::Write }),
        Command::Plan { selection, root } => plan::plan(&selection, &root),
        Command::Run { selection, out, resume } => {
            run::run(&selection, &out, if resume { run::Start::Resume } else { run::Start::Fresh })
        }
        Command::Report { paths, format, check } => {
            report::report(&paths, format, if check { report::Mode::Check } else { report::Mode::Write })
        }
        Command::Compare { old, new } => compare::compare(&old, &new),
        Command::Export { path, format } => export::export(&path, format),
        Command::Irqs { all, host } => inspect::irqs(&host.root, irqs::Options { all, json: host.json }),
        Command::Host { host } => {
            inspect::host(&host.root, if host.json { inspect::Form::Json } else { inspect::Form::Text })
        }
        Command::Capture { directory } => inspect::capture(&directory),
        Command::Lab { command } => lab::lab(&command),
        Command::Restore => restore::restore(),
        Command::Guest { shared } => return ExitCode::from(crate::lab::guest(&shared)),
        Command::Guard { runner, words } => return status(crate::lab::guard(runner, &words)),
        Command::Launch => return status(crate::run::launch::launch()),
        Command::Workload { name, arguments } => return status(crate::workloads::run(&name, &arguments)),
    };
    exit.into()
}
