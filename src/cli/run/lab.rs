//! `irqlab run` of an experiment with a lab: its trials happen in machines that are booted for them. Changes nothing of
//! this host and takes no lock of it, so it needs no root for itself.

use std::path::{Path, PathBuf};

use super::{
    COMPLETE, Continue, Host, PARTIAL, Start, begin, complete, header_of, interrupted, refuse, report_folder, resumed,
    template,
};
use crate::bind;
use crate::cli::lab::programs;
use crate::cli::progress::{Lines, TwoStage};
use crate::cli::select::Selected;
use crate::cli::{Exit, print};
use crate::design::Experiment;
use crate::diagnostic::{Diagnostic, Kind};
use crate::lab::tools::Tools;
use crate::lab::{self, Job, LabError, Patience, Stand, command, kvm};
use crate::recording::{self, Accelerator, Header, HostFacts};
use crate::run::Outcome;

/// Runs all of it. `facts` are those of this host. `Err` where nothing was run.
pub(super) fn run(
    host: &Host<'_>,
    (selected, facts): (&Selected, &HostFacts),
    out: &Path,
    start: Start,
) -> Result<(Exit, Continue), Exit> {
    let experiment = &selected.experiment;
    refuse(selected, &bind::refusals(experiment))?;
    let tools = programs()?;
    refuse(selected, &cannot_be_made(experiment, &tools))?;
    let mut design = bind::unbound_record(experiment, &selected.sources);
    design.template_text = template(selected)?;
    let header = Header { order: bind::order(experiment), host: facts.clone(), ..header_of(selected, design) };
    let folder = match report_folder(out, &experiment.name) {
        Ok(folder) => folder,
        Err(message) => return Ok(failed(message)),
    };
    let partial = folder.join(PARTIAL);
    let (mut writer, earlier) = match begin(&partial, &header, start) {
        Ok(begun) => begun,
        Err(exit) => return Ok((exit, Continue::Stop)),
    };
    if earlier.is_some()
        && let Err(error) = resumed(&mut writer, &header)
    {
        return Ok(failed(error));
    }
    let kernel = |wanted: Option<&str>| tools.kernel(wanted);
    let accelerator = kvm::accelerator(&tools, host.state_dir);
    if let (Accelerator::Emulated, Some(reason)) = &accelerator {
        print::talk(&format!("the lab is emulated: {reason}"));
    }
    let temporary = temporary();
    let stand = Stand {
        program: host.program,
        temporary: &temporary,
        folder: &folder,
        signals: host.signals,
        tools: &tools,
        kernel: &kernel,
        patience: Patience::with(accelerator.0),
        accelerator,
    };
    let job = Job { experiment, sources: &selected.sources, header: &header, earlier: earlier.as_ref() };
    let left = earlier.as_ref().map_or(header.order.len(), |earlier| earlier.remaining().len());
    let mut lines = Lines::new(&header.design, left);
    let until = earlier.as_ref().map_or(&header, |earlier| &earlier.header).design.protocol.until.as_ref();
    let outcome = if until.is_some_and(|until| until.decided.is_none()) {
        let trials = earlier.as_ref().map(|earlier| earlier.trials.clone()).unwrap_or_default();
        let mut two_stage = TwoStage::new(lines, (experiment, &header), trials);
        lab::run(&job, &stand, &mut writer, &mut two_stage)
    } else {
        lab::run(&job, &stand, &mut writer, &mut lines)
    };
    match outcome {
        Ok(Outcome::Complete { invalid }) => Ok((complete(&partial, &folder.join(COMPLETE), invalid), Continue::Go)),
        Ok(Outcome::Interrupted { signal }) => Ok(failed(interrupted(&signal, &partial, selected))),
        Err(LabError::Impossible(diagnostics)) => {
            print::diagnostics(&diagnostics, &selected.sources);
            drop(writer);
            forget_if_empty(&partial);
            Err(Exit::Host)
        }
        Err(error) => {
            let (exit, end) = failed(format!("{}: {error}", experiment.name));
            print::talk(&format!(
                "what was recorded is in {}: when the cause is gone, `irqlab run {} --resume` goes on",
                partial.display(),
                selected.path.display()
            ));
            Ok((exit, end))
        }
    }
}

/// Machines that this host's programs or kernels do not make.
fn cannot_be_made(experiment: &Experiment, tools: &Tools) -> Vec<Diagnostic> {
    let span = experiment.lab.as_ref().map_or(experiment.name_span, |lab| lab.span);
    let mut found: Vec<Diagnostic> = Vec::new();
    for machine in experiment.treatments.iter().filter_map(|treatment| treatment.machine.as_ref()) {
        let lacks = tools.kernel(machine.kernel.as_deref()).err().into_iter().chain(command::cannot(tools, machine));
        for message in lacks {
            let diagnostic = span.error(Kind::HostCannot { message, help: String::new() });
            if !found.contains(&diagnostic) {
                found.push(diagnostic);
            }
        }
    }
    found
}

fn failed(message: impl std::fmt::Display) -> (Exit, Continue) {
    print::error(message);
    (Exit::Run, Continue::Stop)
}

/// A recording without a trial is nothing to go on with.
fn forget_if_empty(partial: &Path) {
    if recording::read(partial).is_ok_and(|recorded| recorded.trials.is_empty()) {
        let _ = std::fs::remove_file(partial);
    }
}

/// Where folders shared with guests are made: on a disk rather than in memory, which the machines need.
fn temporary() -> PathBuf {
    let disk = Path::new("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && disk.is_dir() { disk.to_owned() } else { std::env::temp_dir() }
}
