//! Labs: the command that boots each kind of machine.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use insta::{Settings, assert_snapshot};
use irqlab::check::{self, Options};
use irqlab::design::Machine;
use irqlab::lab::command::{Boot, cannot, images, words};
use irqlab::lab::tools::{Kernel, Tools};
use irqlab::recording::Accelerator;

fn tools(qemu_version: &str) -> Tools {
    Tools {
        qemu: PathBuf::from("/usr/bin/qemu-system-x86_64"),
        qemu_version: qemu_version.to_owned(),
        vng: PathBuf::from("/opt/irqlab/vng/bin/vng"),
        vng_version: "virtme-ng 1.42".to_owned(),
        path: OsString::from("/opt/irqlab/vng/bin:/usr/bin"),
    }
}

/// Name, machine and boot options of the first treatment of each experiment in the case file.
fn machines() -> Vec<(String, Machine, Vec<String>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/lab/machines.exp");
    let checked = check::load(&file, &Options::default()).expect("the case is right");
    let first = checked.experiments.into_iter().map(|mut experiment| {
        let treatment = experiment.treatments.swap_remove(0);
        let options = treatment.boot_options().into_iter().map(str::to_owned).collect();
        (experiment.name, treatment.machine.expect("it has a lab"), options)
    });
    first.collect()
}

#[test]
fn each_kind_of_machine_is_booted_by_its_own_words() {
    let kernel = Kernel { image: PathBuf::from("/boot/vmlinuz-6.1.0-57-amd64"), version: "6.1.0-57-amd64".to_owned() };
    let mut shown = String::new();
    for (name, machine, options) in machines() {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        for accelerator in [Accelerator::Emulated, Accelerator::Kvm] {
            let boot = Boot {
                machine: &machine,
                options: &options,
                kernel: &kernel,
                accelerator,
                shared: Path::new("/var/tmp/a,b/shared"),
                console: Path::new("/var/tmp/a,b/console.log"),
                command: "irqlab guest /var/tmp/a,b/shared",
            };
            writeln!(shown, "== {name}, {accelerator:?}").unwrap();
            for word in words(&tools("QEMU emulator version 7.2.22"), &boot) {
                // One part of a long word on a line.
                writeln!(shown, "{}", word.replace(" -", "\n    -")).unwrap();
            }
        }
        for image in images(&machine) {
            writeln!(shown, "image {} {}", image.name, image.size_bytes).unwrap();
        }
    }
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../snapshots/lab");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| assert_snapshot!("words", shown));
}

#[test]
fn an_adapter_that_this_qemu_lacks_is_named_before_it_is_started() {
    let (_, machine, _) = machines().into_iter().find(|(name, ..)| name == "adapters_linked").unwrap();
    let lack = cannot(&tools("QEMU emulator version 7.2.22"), &machine).unwrap();
    assert!(lack.contains("igb") && lack.contains("8.0"), "{lack}");
    assert_eq!(cannot(&tools("QEMU emulator version 8.2.2"), &machine), None);
}
