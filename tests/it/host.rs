//! Host facts from files: `/proc/interrupts` of many kernels, and captured hosts.

use std::fs;
use std::path::Path;

use irqlab::cpu_set::{Cpu, Irq};
use irqlab::host::counters::{Row, Table, TableError};
use irqlab::host::interrupts::{Description, describe};

fn interrupts(name: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/interrupts").join(format!("{name}.txt"));
    Table::parse(&fs::read(path).unwrap()).unwrap()
}

fn row<'a>(table: &'a Table, label: &str) -> &'a Row {
    table.rows.iter().find(|row| &*row.label == label).unwrap()
}

fn described(table: &Table, label: &str) -> (String, Option<String>, Vec<String>) {
    let Description { chip, hwirq, actions } = describe(row(table, label));
    (chip, hwirq, actions)
}

/// Name, CPUs, numbered rows, named rows, rows with some but not all counts, rows with none.
const INDEX: [(&str, &str, usize, usize, usize, usize); 20] = [
    ("01-x86-2.4-smp-xtpic-ioapic", "0-1", 10, 3, 1, 0),
    ("02-x86-up-noapic-xtpic", "0", 12, 3, 0, 0),
    ("03-x86-2.6-fused-chip-flow", "0-3", 9, 5, 2, 0),
    ("04-x86-up-kvm-guest", "0", 9, 22, 0, 0),
    ("05-x86-8cpu-ir-dmar", "0-7", 11, 8, 2, 0),
    ("06-s390x-pci", "0-3", 5, 17, 0, 0),
    ("07-s390x-old-two-rows", "0-1", 0, 2, 0, 0),
    ("08-arm64-gicv3-ipi-glued", "0-7", 11, 8, 1, 0),
    ("09-armv7-rpi-fiq", "0-3", 10, 9, 1, 1),
    ("11-arm64-multiword-chip", "0-6", 3, 0, 0, 0),
    ("12-riscv-plic-digit-chip", "0-1", 7, 5, 0, 0),
    ("14-ppc4xx-uic-names-with-blanks", "0", 8, 7, 0, 0),
    ("16-xen-dyn-split-flow", "0-3", 5, 0, 0, 0),
    ("17-x86-smt-off-even-cpus", "0,2,4,6", 4, 4, 2, 0),
    ("19-x86-1152cpu", "0-1151", 7, 6, 2, 0),
    ("21-x86-2026-tabular-layout", "0-3", 5, 5, 0, 0),
    ("22-x86-intx-17-actions", "0-7", 1, 0, 0, 0),
    ("23-x86-hyperv-hyp-hvs", "0", 3, 8, 0, 0),
    ("25-synthetic-tabs-softirq-names", "0-1", 2, 5, 1, 0),
    ("28-softirqs-irq-poll", "0-1", 0, 10, 0, 0),
];

#[test]
fn every_layout_has_the_rows_of_the_index() {
    for (name, cpus, numbered, named, fewer, none) in INDEX {
        let table = interrupts(name);
        let numbers = table.rows.iter().filter(|row| row.irq.is_some()).count();
        let lengths: Vec<usize> = table.rows.iter().map(|row| table.counts(row).len()).collect();
        let some = lengths.iter().filter(|length| (1..table.cpus.len()).contains(*length)).count();
        let no = lengths.iter().filter(|length| **length == 0).count();
        let found = (table.cpu_set().to_string(), numbers, table.rows.len() - numbers, some, no);
        assert_eq!(found, (cpus.to_owned(), numbered, named, fewer, none), "{name}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/interrupts");
    let files = fs::read_dir(folder).unwrap().count();
    assert_eq!(files, INDEX.len() + 1, "a file without an entry here, or the cut one is gone");
}

#[test]
fn a_file_cut_at_4096_bytes_is_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/interrupts/26-truncated-4096-read.txt");
    assert_eq!(Table::parse(&fs::read(path).unwrap()), Err(TableError::CutHeader { length: 4096 }));
}

/// File, label, chip, hardware number (empty: none), actions joined with `|`.
const DESCRIPTIONS: [(&str, &str, &str, &str, &str); 27] = [
    ("01-x86-2.4-smp-xtpic-ioapic", "12", "IO-APIC-edge", "", "PS/2 Mouse"),
    ("01-x86-2.4-smp-xtpic-ioapic", "2", "XT-PIC", "", "cascade"),
    ("02-x86-up-noapic-xtpic", "5", "XT-PIC", "", "ehci_hcd|radeon@pci:0000:02:00.0"),
    ("02-x86-up-noapic-xtpic", "11", "XT-PIC", "", "ohci_hcd|eth0|Bt87x audio"),
    ("03-x86-2.6-fused-chip-flow", "4", "IO-APIC-edge", "", ""),
    ("03-x86-2.6-fused-chip-flow", "7", "IO-APIC-edge", "", ""),
    ("03-x86-2.6-fused-chip-flow", "16", "IO-APIC-fasteoi", "", "ahci|uhci_hcd:usb3|uhci_hcd:usb9|cap8[0]|cap8[4]"),
    ("04-x86-up-kvm-guest", "24", "PCI-MSI", "81920", "ahci[0000:00:05.0]"),
    ("05-x86-8cpu-ir-dmar", "27", "IR-PCI-MSI", "512000", "ahci[0000:00:1f.2]"),
    ("05-x86-8cpu-ir-dmar", "30", "IR-PCI-MSI", "524288", ""),
    ("06-s390x-pci", "3", "PCI-MSI", "", "mlx5_async@pci:0002:00:00.0"),
    ("08-arm64-gicv3-ipi-glued", "50", "ARMH0061:00", "3", "ACPI:Event"),
    ("08-arm64-gicv3-ipi-glued", "57", "ITS-MSI", "81920", "ena-mgmnt@pci:0000:00:05.0"),
    ("09-armv7-rpi-fiq", "24", "ARMCTRL-level", "2", "VCHIQ doorbell"),
    ("09-armv7-rpi-fiq", "48", "ARMCTRL-level", "50", "DMA IRQ"),
    ("11-arm64-multiword-chip", "702", "codec26 IRQ1 Controller", "0", "GPIO1 rise"),
    ("12-riscv-plic-digit-chip", "37", "11910000.pinctrl", "35", "gpiomon"),
    ("12-riscv-plic-digit-chip", "15", "SiFive PLIC", "44", "xhci-hcd:usb1"),
    ("14-ppc4xx-uic-names-with-blanks", "20", "UIC", "6", "MAL TX EOB"),
    ("14-ppc4xx-uic-names-with-blanks", "39", "UIC", "26", "sata-dwc[4bffd1000.sata]"),
    ("16-xen-dyn-split-flow", "70", "xen-dyn", "", "vif0-q0-tx"),
    ("16-xen-dyn-split-flow", "312", "xen-dyn-lateeoi", "", "vif13.0-q1-tx"),
    ("17-x86-smt-off-even-cpus", "128", "IR-PCI-MSI", "327680", "xhci_hcd"),
    ("19-x86-1152cpu", "24", "PCI-MSI", "1048576", "PCIe PME|aerdrv"),
    ("19-x86-1152cpu", "1160", "IR-PCI-MSI", "102242399", "i40e-0000:c3:00.3:fdir-TxRx-0"),
    ("21-x86-2026-tabular-layout", "164", "IR-PCI-MSIX-0000:65:00.0", "3", "ice-ens1f0-TxRx-2"),
    ("21-x86-2026-tabular-layout", "1", "IR-IO-APIC", "1", "i8042"),
];

#[test]
fn chips_hardware_numbers_and_actions_are_told_apart_in_every_layout() {
    for (name, label, chip, hwirq, actions) in DESCRIPTIONS {
        let hwirq = (!hwirq.is_empty()).then(|| hwirq.to_owned());
        let actions: Vec<String> = actions.split('|').filter(|text| !text.is_empty()).map(str::to_owned).collect();
        assert_eq!(described(&interrupts(name), label), (chip.to_owned(), hwirq, actions), "{name}, {label}");
    }
    assert_eq!(described(&interrupts("22-x86-intx-17-actions"), "21").2.len(), 17);
}

#[test]
fn counts_glued_to_the_colon_are_whole() {
    let table = interrupts("08-arm64-gicv3-ipi-glued");
    assert_eq!(table.counts(row(&table, "IPI0"))[..2], [2_768_800_001, 2_844_210_002]);
    assert_eq!(&*row(&table, "IPI0").description, "Rescheduling interrupts");
    assert_eq!(table.counts(row(&table, "10"))[7], 3_225_020_088);
    assert!(table.is_scalar(row(&table, "Err")));
}

#[test]
fn a_row_without_counts_has_none() {
    let table = interrupts("09-armv7-rpi-fiq");
    assert!(table.counts(row(&table, "FIQ")).is_empty());
    assert_eq!(&*row(&table, "FIQ").description, "usb_fiq");
}

#[test]
fn digits_that_begin_a_chip_are_no_count() {
    let table = interrupts("12-riscv-plic-digit-chip");
    assert_eq!(table.counts(row(&table, "37")), [0, 0]);
    let table = interrupts("11-arm64-multiword-chip");
    assert_eq!(table.counts(row(&table, "701")), [75, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn the_columns_of_a_host_without_smt_are_its_even_cpus() {
    let table = interrupts("17-x86-smt-off-even-cpus");
    let counts: Vec<_> = table.by_cpu(row(&table, "130")).collect();
    assert_eq!(counts, [(Cpu(0), 0), (Cpu(2), 0), (Cpu(4), 0), (Cpu(6), 71_110)]);
    assert_eq!(table.by_cpu(row(&table, "ERR")).count(), 0);
}

#[test]
fn rows_of_one_label_are_numbered() {
    let table = interrupts("14-ppc4xx-uic-names-with-blanks");
    let keys: Vec<_> = table.rows.iter().filter(|row| &*row.label == "LOC").map(Row::key).collect();
    assert_eq!(keys, ["LOC", "LOC#2"]);
}

#[test]
fn named_rows_may_come_first_and_numbered_ones_not_at_all() {
    let table = interrupts("06-s390x-pci");
    let first: Vec<_> = table.rows.iter().take(4).map(|row| (&*row.label, row.irq)).collect();
    assert_eq!(first, [("EXT", None), ("I/O", None), ("AIO", None), ("3", Some(Irq(3)))]);
    assert_eq!(&*row(&table, "C15").description, "[I/O] 3215");
    assert_eq!(table.counts(row(&table, "C15")), [0, 0, 0, 0]);
    let old = interrupts("07-s390x-old-two-rows");
    assert_eq!(old.counts(row(&old, "I/O")), [6900, 33_410]);
    let azure = interrupts("23-x86-hyperv-hyp-hvs");
    assert_eq!(azure.counts(row(&azure, "HYP")), [303_764_001]);
}

#[test]
fn long_lines_are_read_to_their_last_column() {
    let table = interrupts("19-x86-1152cpu");
    let last = |label| table.by_cpu(row(&table, label)).last().unwrap();
    assert_eq!(last("LOC"), (Cpu(1151), 101_151));
    assert!(table.counts(&table.rows[4]).len() == 1152);
    assert!(table.rows.iter().any(|row| table.counts(row).contains(&u64::from(u32::MAX))));
}

#[test]
fn tabs_between_counts_are_blanks() {
    let table = interrupts("25-synthetic-tabs-softirq-names");
    assert_eq!(table.counts(row(&table, "NET_RX")), [867_001, 225]);
    assert_eq!(table.counts(row(&table, "TASKLET")), [205, 0]);
    let softirqs = interrupts("28-softirqs-irq-poll");
    assert_eq!(softirqs.counts(row(&softirqs, "IRQ_POLL")), [0, 0]);
    assert_eq!(softirqs.counts(row(&softirqs, "RCU")), [39_301, 47_002]);
}

fn json_of(name: &str, options: irqlab::cli::irqs::Options) -> Vec<serde_json::Value> {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("proc")).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/interrupts").join(format!("{name}.txt"));
    fs::copy(from, dir.path().join("proc/interrupts")).unwrap();
    let json = irqlab::cli::irqs::irqs(&irqlab::host::files::Root::new(dir.path()), options).unwrap();
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_root_with_only_proc_interrupts_is_enough_for_the_list() {
    let options = irqlab::cli::irqs::Options { all: true, json: true };
    for (name, _, numbered, named, ..) in INDEX {
        let rows = json_of(name, options);
        let irqs = rows.iter().filter(|row| row["irq"].is_number()).count();
        assert_eq!((irqs, rows.len() - irqs), (numbered, named), "{name}");
    }
    let rows = json_of("17-x86-smt-off-even-cpus", options);
    let nic = rows.iter().find(|row| row["label"] == "130").unwrap();
    assert_eq!(nic["counts"], serde_json::json!({"0": 0, "2": 0, "4": 0, "6": 71_110}));
    assert_eq!((&nic["chip"], &nic["actions"]), (&"IR-PCI-MSI".into(), &serde_json::json!(["enp0s31f6"])));
    assert!(nic["affinity"].is_null() && nic["effective"].is_null() && nic["movable"] == false);
    let error = rows.iter().find(|row| row["label"] == "ERR").unwrap();
    assert_eq!(error["counts"], serde_json::json!({"all": 0}), "a count of the host is not CPU 0's");
    assert!(error["movable"].is_null() && error["chip"].is_null());
    let keys: Vec<&String> = nic.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 11);
}

#[test]
fn named_rows_are_listed_only_when_asked_for() {
    let rows = json_of("06-s390x-pci", irqlab::cli::irqs::Options { all: false, json: true });
    assert_eq!(rows.len(), 5);
}

/// Facts that other tests or time may change between two readings.
fn steady(mut facts: irqlab::recording::HostFacts) -> irqlab::recording::HostFacts {
    facts.cpu_mhz = None;
    facts.default_affinity = None;
    facts.governors.clear();
    facts.writers.clear();
    for irq in &mut facts.irqs {
        (irq.affinity, irq.effective) = (None, None);
    }
    facts
}

#[test]
fn a_captured_host_has_the_facts_of_the_live_one() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("host");
    let live = irqlab::host::files::Root::new("/");
    irqlab::host::capture::capture(&live, &folder).unwrap();
    // As after a checkout: modes are lost, and only the list of them is left.
    for irq in fs::read_dir(folder.join("proc/irq")).unwrap().map(|entry| entry.unwrap().path().join("smp_affinity")) {
        if irq.exists() {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(irq, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
    let captured = irqlab::host::read_facts(&irqlab::host::files::Root::new(&folder));
    assert!(
        captured
            .irqs
            .iter()
            .all(|irq| irq.affinity.is_some() || irq.movability != irqlab::recording::facts::Movability::Movable)
    );
    assert_eq!(steady(captured), steady(irqlab::host::read_facts(&live)));
    let error = irqlab::host::capture::capture(&live, &folder).unwrap_err();
    assert!(error.to_string().contains("the folder is not empty"), "{error}");
}

#[test]
fn nothing_in_a_capture_tells_the_host_from_another() {
    let source = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/cmdline", "root=UUID=c0ffee ip=10.9.8.7 quiet\n"),
        ("proc/cpuinfo", "processor\t: 0\nSerial\t\t: 00000000c0ffee\n"),
        ("proc/interrupts", "  CPU0\n"),
        (
            "proc/self/mountinfo",
            "1 0 0:2 /docker/c0ffee /sys/fs/cgroup ro - cgroup2 cgroup rw\n2 0 0:3 / /srv/c0ffee rw - ext4 /dev/c0ffee rw\n",
        ),
        ("proc/sys/kernel/hostname", "c0ffee\n"),
        ("sys/class/dmi/id/product_serial", "c0ffee\n"),
        ("sys/devices/pci0000:00/0000:00:05.0/net/eth0/address", "52:54:00:c0:ff:ee\n"),
    ] {
        let place = source.path().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    fs::create_dir_all(source.path().join("sys/class/net")).unwrap();
    let link = source.path().join("sys/class/net/eth0");
    std::os::unix::fs::symlink("../../devices/pci0000:00/0000:00:05.0/net/eth0", link).unwrap();
    let target = tempfile::tempdir().unwrap();
    irqlab::host::capture::capture(&irqlab::host::files::Root::new(source.path()), target.path()).unwrap();
    let mut folders = vec![target.path().to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if entry.file_type().unwrap().is_file() {
                seen += 1;
                let text = fs::read_to_string(&path).unwrap();
                let telling = ["c0ffee", "c0:ff:ee", "10.9.8.7"].iter().find(|word| text.contains(**word));
                assert_eq!(telling, None, "{}: {text}", path.display());
            }
        }
    }
    assert!(seen >= 4, "{seen}");
}

fn committed(name: &str) -> irqlab::host::files::Root {
    irqlab::host::files::Root::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(name))
}

fn irqs_of(facts: &irqlab::recording::HostFacts, device: &str) -> String {
    let device = facts.device(device).unwrap();
    device.irqs.iter().map(|irq| irq.0.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn interrupts_belong_to_the_device_that_lists_them() {
    let facts = irqlab::host::read_facts(&committed("lab-4cpu-e1000-megasas"));
    assert_eq!(facts.unreadable, Vec::<String>::new());
    assert_eq!((irqs_of(&facts, "eth0"), irqs_of(&facts, "eth1")), ("22".to_owned(), "23".to_owned()));
    assert_eq!((irqs_of(&facts, "sda"), irqs_of(&facts, "vda")), ("30 31 32 33".to_owned(), "24 25".to_owned()));
    let drivers: Vec<_> = ["eth0", "sda", "vda"].map(|name| facts.device(name).unwrap().driver.clone().unwrap()).into();
    assert_eq!(drivers, ["e1000", "megaraid_sas", "virtio_blk"]);
    let managed = facts.irq(Irq(25)).unwrap();
    assert_eq!(managed.movability, irqlab::recording::facts::Movability::Managed);
    assert_eq!(facts.irq(Irq(31)).unwrap().hint.as_ref().unwrap().to_string(), "1");
    assert_eq!(facts.topology.cpus[3].siblings.to_string(), "2-3");
    assert_eq!((facts.topology.cpus[0].hotpluggable, facts.topology.cpus[1].hotpluggable), (false, true));
    assert_eq!((facts.topology.cpus[1].node, facts.topology.cpus[2].node), (0, 1));
    assert_eq!(facts.cpuset.v2.as_deref(), Some("/sys/fs/cgroup"));
    let found = irqlab::host::disturbances::disturbances(&facts);
    let remedies: Vec<&str> = found.iter().map(|found| &*found.remedy).collect();
    for remedy in ["hold { service irqbalance stopped }", "hold { smt off }", "hold { sysctl kernel.nmi_watchdog=0 }"] {
        assert!(remedies.contains(&remedy), "{remedy}: {remedies:?}");
    }
}

#[test]
fn queues_are_in_order_and_eth1_is_not_eth10() {
    let facts = irqlab::host::read_facts(&committed("smt-off-holes"));
    assert_eq!(irqs_of(&facts, "eth1"), "139 138 137 136 135 134 133 132 131 130 129 128");
    assert_eq!(irqs_of(&facts, "eth10"), "141 140");
    assert_eq!(irqs_of(&facts, "end0"), "9", "a device off PCI is found by its handler's name");
    assert_eq!(facts.topology.cpus[3].cpu, Cpu(6));
    assert_eq!(facts.topology.cpus[3].siblings.to_string(), "6");
    assert_eq!((facts.topology.nohz_full.is_empty(), facts.turbo), (true, Some(true)));
    assert_eq!((facts.irq_writable, facts.systemd), (false, true));
}

#[test]
fn the_table_of_a_host_shows_what_can_be_moved_and_why_not() {
    let text =
        irqlab::cli::irqs::irqs(&committed("lab-4cpu-e1000-megasas"), irqlab::cli::irqs::Options::default()).unwrap();
    let line = |irq: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(irq)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("22"), "22 eth0 e1000 eth0 0-3 3 - - yes 4 0 0 3105 3109");
    assert_eq!(line("25"), "25 vda virtio_blk virtio0-req.0 0-3 0 - - no, managed 211 340 0 0 551");
    assert_eq!(line("33"), "33 sda megaraid_sas megasas0-msix3 0-3 3 3 - yes 0 0 0 2000 2000");
}

#[test]
fn every_smt_state_is_a_fact_and_its_absence_too() {
    let dir = tempfile::tempdir().unwrap();
    let root = irqlab::host::files::Root::new(dir.path());
    assert_eq!(irqlab::host::read_facts(&root).topology.smt_control, None);
    let folder = dir.path().join("sys/devices/system/cpu/smt");
    fs::create_dir_all(&folder).unwrap();
    for state in ["on", "off", "forceoff", "notsupported", "notimplemented", "2"] {
        fs::write(folder.join("control"), format!("{state}\n")).unwrap();
        assert_eq!(irqlab::host::read_facts(&root).topology.smt_control.as_deref(), Some(state));
    }
}

#[test]
fn the_captured_virtual_machine_has_its_devices_one_level_up() {
    let facts = irqlab::host::read_facts(&committed("vm-2cpu-virtio"));
    assert_eq!((irqs_of(&facts, "eth0"), irqs_of(&facts, "vda")), ("37 38 39".to_owned(), "35 36".to_owned()));
    assert_eq!(facts.irq(Irq(36)).unwrap().movability, irqlab::recording::facts::Movability::Managed);
    assert_eq!(facts.cpuset.v1.as_deref(), Some("/sys/fs/cgroup/cpuset"));
}
