//! `irqlab run` of an experiment whose levels ask for boots of the host itself: one part a boot, until all are done.
//! Boots nothing and touches no boot loader; says what to put on the kernel command line.

use std::path::Path;

use super::{
    COMPLETE, Continue, Host, PARTIAL, Start, append, begin, complete, header_of, interrupted, ready, refuse,
    report_folder, resumed, template,
};
use crate::bind::{self, Schedule};
use crate::cli::progress::{self, Lines};
use crate::cli::select::Selected;
use crate::cli::{Exit, print, restore};
use crate::host::boot_options;
use crate::recording::{self, Boot, BootAsked, BootOption, Header, HostFacts, Line, Recording, Writer};
use crate::run::reboots::{MOST_WRONG_BOOTS, Now, Part, Request, Step, Why, next};
use crate::run::{self as runner, Outcome, Plan, watchdog};
use crate::settings::Settings;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Runs what this boot can do. `Err` where nothing was touched.
pub(super) fn run(
    host: &Host<'_>,
    (selected, facts): (&Selected, &HostFacts),
    out: &Path,
    start: Start,
) -> Result<(Exit, Continue), Exit> {
    refuse(selected, &bind::refusals(&selected.experiment))?;
    let template = template(selected)?;
    // Before anything is written or locked: what the user asked for cannot be looked at without it.
    let boot_id = host.system.read_text(BOOT_ID).map_err(|error| {
        print::error(format!("{error}: without it one boot cannot be told from another"));
        Exit::Host
    })?;
    let mut settings = match Settings::open(host.system, host.state_dir, &selected.experiment.name) {
        Ok(settings) => settings,
        Err(error) => return Ok(failed(error)),
    };
    let mut facts = facts.clone();
    if let Err(error) = look_at_busy_cpus(host, selected, &mut facts) {
        return Ok(failed(error));
    }
    let mut design = bind::unbound_record(&selected.experiment, &selected.sources);
    design.template_text = template;
    let order = bind::order(&selected.experiment);
    let header = Header { order, host: facts, ..header_of(selected, design) };
    let folder = match report_folder(out, &selected.experiment.name) {
        Ok(folder) => folder,
        Err(message) => return Ok(failed(message)),
    };
    let here = Here { host, selected, header, boot_id, folder: &folder };
    here.part(&mut settings, start)
}

fn failed(message: impl std::fmt::Display) -> (Exit, Continue) {
    print::error(message);
    (Exit::Run, Continue::Stop)
}

/// Where only busy CPUs can tell whether an option is in force, keeps them busy.
fn look_at_busy_cpus(host: &Host<'_>, selected: &Selected, facts: &mut HostFacts) -> Result<(), String> {
    let named: Vec<&str> =
        selected.experiment.treatments.iter().flat_map(|treatment| treatment.boot_options()).collect();
    if boot_options::needs_busy_look(facts, &named) {
        print::talk("keeping every CPU busy, at most two periods of the NMI watchdog, to see whether it is there");
        facts.nmi_growth = Some(watchdog::look(host.system).map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// This boot of the host, and the experiment on it.
struct Here<'a> {
    host: &'a Host<'a>,
    selected: &'a Selected,
    /// As a fresh run would begin with.
    header: Header,
    boot_id: String,
    folder: &'a Path,
}

impl Here<'_> {
    fn part(&self, settings: &mut Settings<'_>, start: Start) -> Result<(Exit, Continue), Exit> {
        let partial = self.folder.join(PARTIAL);
        let (mut writer, earlier) = match begin(&partial, &self.header, start) {
            Ok(begun) => begun,
            Err(exit) => return Ok((exit, Continue::Stop)),
        };
        let recorded = match recording::read(&partial) {
            Ok(recorded) => recorded,
            Err(error) => return Ok(failed(error)),
        };
        let part = match self.next(&recorded) {
            Step::Complete => return Ok((self.finish(&recorded), Continue::Go)),
            Step::Reboot(request) => {
                let asked = self.ask(&request, &recorded, &mut writer);
                return Ok(asked.map_or_else(failed, |exit| (exit, Continue::Go)));
            }
            Step::Run(part) => part,
        };
        let is_served = |treatment: usize| part.treatments.contains(&treatment);
        let bound = ready((self.selected, self.host), &self.header.host, &is_served)?;
        let entered = if earlier.is_some() { resumed(&mut writer, &self.header) } else { Ok(()) };
        if let Err(error) = entered.and_then(|()| self.enter(&part, &recorded, (&bound.schedule, &mut writer))) {
            return Ok(failed(error));
        }
        Ok(self.trials((&part, &bound.schedule), &recorded, settings, &mut writer))
    }

    fn next(&self, recorded: &Recording) -> Step {
        next(&self.selected.experiment, recorded, &Now { facts: &self.header.host, boot_id: &self.boot_id })
    }

    /// Records the boot, unless it is recorded already.
    fn enter(
        &self,
        part: &Part,
        recorded: &Recording,
        (schedule, writer): (&Schedule, &mut Writer),
    ) -> Result<(), String> {
        if recorded.header.boots.iter().any(|boot| boot.number == part.number) {
            return Ok(());
        }
        let designs = &self.selected.experiment.treatments;
        let bound = |index: &usize| (*index, bind::treatment_record(&designs[*index], &schedule.treatments[*index]));
        let boot = Boot {
            number: part.number,
            planned: part.planned,
            at: self.header.started_at.clone(),
            boot_id: Some(self.boot_id.clone()),
            lab: None,
            host: self.header.host.clone(),
            options: part.judgement.options.clone(),
            treatments: part.treatments.iter().map(bound).collect(),
        };
        for BootOption { option, evidence, .. } in &boot.options {
            print::talk(&format!("`{option}` is in force: {evidence}"));
        }
        append(writer, &Line::Boot(boot))
    }

    fn trials(
        &self,
        (part, schedule): (&Part, &Schedule),
        recorded: &Recording,
        settings: &mut Settings<'_>,
        writer: &mut Writer,
    ) -> (Exit, Continue) {
        let protocol = &self.selected.experiment.protocol;
        let plan = Plan::new(schedule, (protocol.settle_ms, protocol.retries)).resume(recorded);
        let plan = Plan { trials: part.trials.clone(), boot: Some(part.number), ..plan };
        let mut lines = Lines::new(&self.header.design, plan.trials.len());
        let finished = runner::run(self.host.machine(settings), &plan, writer, &mut lines);
        let put_back = restore::outcome(&finished.restored);
        let go_on = if put_back == Exit::Fine { Continue::Go } else { Continue::Stop };
        match finished.outcome {
            Ok(Outcome::Complete { .. }) => match self.after(writer) {
                Ok(exit) => (exit.and(put_back), go_on),
                Err(error) => failed(error),
            },
            Ok(Outcome::Interrupted { signal }) => failed(interrupted(&signal, writer.path(), self.selected)),
            Err(error) => {
                print::talk(&format!("what was recorded is in {}", writer.path().display()));
                failed(format!("{}: {error}", self.selected.experiment.name))
            }
        }
    }

    /// After the trials of a boot: the look of a two-stage run where it is due, the report, or the next boot.
    fn after(&self, writer: &mut Writer) -> Result<Exit, String> {
        let mut recorded = recording::read(writer.path()).map_err(|error| error.to_string())?;
        let until = recorded.header.design.protocol.until.as_ref();
        if until.is_some_and(|until| until.decided.is_none()) && self.next(&recorded) == Step::Complete {
            let decision = progress::decide(&self.selected.experiment, &recorded.header, &recorded.trials);
            decision.map_or(Ok(()), |decision| append(writer, &Line::Decided(decision)))?;
            recorded = recording::read(writer.path()).map_err(|error| error.to_string())?;
        }
        match self.next(&recorded) {
            // Trials that were cut short are still to be run, in this boot.
            Step::Run(part) => {
                Err(format!("{} trials of this boot are still to be run: go on with --resume", part.trials.len()))
            }
            Step::Reboot(request) => self.ask(&Request { why: Why::Due, ..request }, &recorded, writer),
            Step::Complete => Ok(self.finish(&recorded)),
        }
    }

    fn finish(&self, recorded: &Recording) -> Exit {
        let invalid = recorded.remaining().len() as u32;
        complete(&self.folder.join(PARTIAL), &self.folder.join(COMPLETE), invalid)
    }

    /// Says which boot is needed, and keeps that it was said.
    fn ask(&self, request: &Request, recorded: &Recording, writer: &mut Writer) -> Result<Exit, String> {
        if request.why != Why::SameBoot {
            let asked = BootAsked {
                at: self.header.started_at.clone(),
                boot_id: self.boot_id.clone(),
                planned: request.planned,
                missing: request.judgement.missing.clone(),
                unwanted: request.judgement.unwanted.clone(),
                command_line: self.header.host.command_line.clone(),
            };
            append(writer, &Line::BootAsked(asked))?;
        }
        let (done, all) = request.done;
        let exit = match request.why {
            Why::Due => {
                print::talk(&format!("{done} of {all} boots done"));
                if !request.judgement.fits() && !self.line(request, recorded).changed {
                    self.explain(request);
                }
                Exit::Fine
            }
            Why::SameBoot => {
                print::error("this is still the same boot: reboot first");
                Exit::Host
            }
            Why::Wrong { times } if times < MOST_WRONG_BOOTS => {
                print::error(format!("not the boot that was asked for; {done} of {all} boots done"));
                self.explain(request);
                Exit::Host
            }
            Why::Wrong { times } => {
                print::error(format!(
                    "the machine came up {times} times without the boot that was asked for, so this stops here: look at \
                     it before it is booted again"
                ));
                self.explain(request);
                Exit::Run
            }
        };
        self.instruct(request, recorded);
        Ok(exit)
    }

    /// What the kernel lacks or has too much, and why that may be.
    fn explain(&self, request: &Request) {
        let told = |option: &BootOption| boot_options::on_command_line(&self.header.host, &option.option);
        for option in &request.judgement.missing {
            let why = if told(option) {
                "it is on the command line: this kernel does not know it, or cannot do it on this machine"
            } else {
                "it is not on the command line: the boot loader was not brought up to date, started another entry, or the \
                 option is misspelt there"
            };
            print::talk(&format!("  wanted `{}`, not in force: {}", option.option, option.evidence));
            print::talk(&format!("    {why}"));
        }
        for option in &request.judgement.unwanted {
            let why = if told(option) {
                "it is on the command line of this boot"
            } else {
                "it is not on the command line: this machine is like that without being told, or a setting made after the \
                 boot makes it so; two levels that look alike cannot be compared"
            };
            print::talk(&format!("  `{}` is in force and must not be: {}", option.option, option.evidence));
            print::talk(&format!("    {why}"));
        }
    }

    /// The command line for the boot that is needed.
    fn line(&self, request: &Request, recorded: &Recording) -> boot_options::CommandLine {
        let wanted: Vec<&str> = request.wanted.iter().map(String::as_str).collect();
        let named: Vec<&str> =
            self.selected.experiment.treatments.iter().flat_map(|treatment| treatment.boot_options()).collect();
        let current = self.host.system.read_text("/proc/cmdline").unwrap_or_default();
        let first = recorded.header.host.command_line.as_deref().unwrap_or_default();
        boot_options::command_line(&current, (&wanted, &named), first)
    }

    /// Says what to put where.
    fn instruct(&self, request: &Request, recorded: &Recording) {
        let line = self.line(request, recorded);
        if line.changed {
            print::talk(&format!("the next boot ({}) wants this kernel command line:", request.planned));
        } else {
            print::talk(&format!("the next boot ({}) wants the same kernel command line once more:", request.planned));
        }
        print::talk(&format!("  {}", line.text));
        if line.changed {
            print::talk(&format!(
                "  GRUB: put it in GRUB_CMDLINE_LINUX of /etc/default/grub and run update-grub, or keep an entry for it and \
                 use grub-reboot; grubby: grubby --update-kernel=DEFAULT{}; kernelstub: kernelstub{}",
                switches(&line, ("--remove-args", "--args")),
                switches(&line, ("--delete-options", "--add-options"))
            ));
        }
        print::talk(&format!("then reboot, and: irqlab run {} --resume", self.selected.path.display()));
    }
}

/// What a tool for boot loaders is to take away and to add.
fn switches(line: &boot_options::CommandLine, (remove, add): (&str, &str)) -> String {
    let switch = |name: &str, options: &[String]| match options {
        [] => String::new(),
        options => format!(" {name} {}", shell_words::quote(&options.join(" "))),
    };
    switch(remove, &line.removed) + &switch(add, &line.added)
}
