//! The one integration test binary; its modules are in `tests/it/`.

#[path = "it/analysis.rs"]
mod analysis;
#[path = "it/bind.rs"]
mod bind;
#[path = "it/check.rs"]
mod check;
#[path = "it/cli.rs"]
mod cli;
#[path = "it/docs.rs"]
mod docs;
#[path = "it/host.rs"]
mod host;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/lab.rs"]
mod lab;
#[path = "it/lab_run.rs"]
mod lab_run;
#[path = "it/live.rs"]
mod live;
#[path = "it/loads.rs"]
mod loads;
#[path = "it/parsers.rs"]
mod parsers;
#[path = "it/probe.rs"]
mod probe;
#[path = "it/reboots.rs"]
mod reboots;
#[path = "it/recorded.rs"]
mod recorded;
#[path = "it/report.rs"]
mod report;
#[path = "it/run.rs"]
mod run;
#[path = "it/settings.rs"]
mod settings;
#[path = "it/syntax.rs"]
mod syntax;
#[path = "it/tidy.rs"]
mod tidy;
