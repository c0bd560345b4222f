//! Guests that really boot: QEMU, virtme-ng and a full kernel. Interrupt counts in them are exact also where every
//! instruction is emulated.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use irqlab::cpu_set::Cpu;
use irqlab::recording::{self, Recording, Trial};

use crate::probe;

/// One machine at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// The only machine of this host's tests, where it can have one.
fn machine() -> Option<MutexGuard<'static, ()>> {
    let output = irqlab(&["lab", "check"], Path::new("/"));
    if !output.status.success() {
        probe::skip(&format!("no lab boots here: {}", String::from_utf8_lossy(&output.stderr)));
        return None;
    }
    Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn irqlab(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_irqlab")).args(arguments).current_dir(folder).output().unwrap()
}

/// A finished run.
struct Ran {
    output: Output,
    folder: tempfile::TempDir,
}

impl Ran {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.exp"), text).unwrap();
        let output = irqlab(&["run", "x.exp", "--out", "out"], folder.path());
        Ran { output, folder }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    #[track_caller]
    fn recording(&self) -> Recording {
        let path = self.folder.path().join("out/x/recording.jsonl");
        let recording = recording::read(&path).unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        for trial in &recording.trials {
            assert_eq!(trial.faults, [], "{}", self.said());
        }
        recording
    }
}

/// Exactly one interrupt for each of the 2,000 reads, on that CPU. A message that is sent elsewhere is moved by the first
/// interrupt after the write, which is still taken where it was (`irq_move_irq()`, kernel/irq/migration.c).
#[track_caller]
fn assert_landed(trial: &Trial, cpu: u32) {
    let row = trial.interrupts.iter().find(|row| row.description.ends_with("megasas0-msix0")).expect("its row");
    let there: u64 = row.by_cpu().filter(|(on, _)| *on == Cpu(cpu)).map(|(_, count)| count).sum();
    assert_eq!(row.total(), 2000, "{row:?}");
    assert!(there >= 1999, "{row:?}");
}

fn trial<'a>(recording: &'a Recording, treatment: &str) -> &'a Trial {
    let named = |trial: &&Trial| recording.header.design.treatments[trial.treatment].name == treatment;
    recording.trials.iter().find(named).unwrap_or_else(|| panic!("no trial of `{treatment}`"))
}

/// Reads that miss every cache: each is one interrupt of the controller.
const READS: &str = "workload reads { shell \"dd if=/dev/sda of=/dev/null iflag=direct bs=4k count=2000 status=none\" }
  measure reads.real lower_is_better
  warmup 0; repeat 1; settle 0s";

#[test]
fn two_thousand_reads_are_two_thousand_interrupts_where_they_were_routed() {
    let Some(_machine) = machine() else { return };
    let ran = Ran::new(&format!(
        "experiment x {{
  lab {{ cpus 4; memory 512MiB; disk megasas size=64MiB }}
  vary routing {{
    first {{ irq \"megasas*\" -> cpu 0 }}
    last {{ irq \"megasas*\" -> cpu 3 }}
  }}
  {READS}
}}
"
    ));
    let recording = ran.recording();
    assert_eq!(recording.header.boots.len(), 1, "routing needs no boot");
    assert_landed(trial(&recording, "routing=first"), 0);
    assert_landed(trial(&recording, "routing=last"), 3);
}

#[test]
fn without_an_io_apic_lines_are_xt_pic_and_messages_move() {
    let Some(_machine) = machine() else { return };
    let ran = Ran::new(&format!(
        "experiment x {{
  lab {{ cpus 2; memory 512MiB; nic e1000; disk megasas size=64MiB; boot \"noapic\" }}
  vary routing {{
    first {{ irq * -> cpu 0 }}
    last {{ irq * -> cpu 1 }}
  }}
  {READS}
}}
"
    ));
    let recording = ran.recording();
    let boot = &recording.header.boots[0];
    let noapic = boot.options.iter().find(|option| option.option == "noapic").unwrap();
    assert_eq!(noapic.in_force, Some(true), "{noapic:?}");
    let last = trial(&recording, "routing=last");
    assert_landed(last, 1);
    let line = boot.host.irqs.iter().find(|irq| irq.actions == ["eth0"]).unwrap();
    assert_eq!(line.chip, "XT-PIC");
}

#[test]
fn with_smt_off_counts_belong_to_the_cpus_that_are_left() {
    let Some(_machine) = machine() else { return };
    let ran = Ran::new(&format!(
        "experiment x {{
  lab {{ cpus 4 sockets 1 cores 2 threads 2; memory 512MiB; disk megasas size=64MiB }}
  hold {{ smt off }}
  vary routing {{
    first {{ irq \"megasas*\" -> cpu 0 }}
    last {{ irq \"megasas*\" -> cpu 2 }}
  }}
  {READS}
}}
"
    ));
    let recording = ran.recording();
    assert_landed(trial(&recording, "routing=first"), 0);
    assert_landed(trial(&recording, "routing=last"), 2);
    assert_eq!(trial(&recording, "routing=last").cpu_times.on.to_string(), "0,2");
}
