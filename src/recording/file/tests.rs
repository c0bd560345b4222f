//! Round trips, torn lines, hostile input and the size of a recording.

use super::*;
use crate::cpu_set::{Cpu, CpuSet, Irq};
use crate::recording::{
    CounterRow, CpuTimes, Factor, Fault, IrqList, MaskGroup, MaskReadings, ProcessRecord, Protocol, RunnerCost,
    Treatment, Until,
};

fn treatment(name: &str, level: usize) -> Treatment {
    Treatment {
        name: name.to_owned(),
        levels: vec![level],
        control: 0,
        settings: vec![],
        routes: vec![],
        workloads: vec![],
        backgrounds: vec![],
    }
}

fn header(trials: u32) -> Header {
    let protocol = Protocol {
        blocks: trials / 2,
        warmup: 0,
        order: "blocks".to_owned(),
        seed: 1,
        order_version: 1,
        settle_ms: 0,
        timeout_ms: 1000,
        retries: 1,
        until: None,
    };
    let factor = Factor { name: "routing".to_owned(), levels: vec!["a".into(), "b".into()], hard_to_change: false };
    let design = Design {
        name: "e".to_owned(),
        title: "e".to_owned(),
        question: None,
        source: None,
        params: vec![],
        factors: vec![factor],
        treatments: vec![treatment("routing=a", 0), treatment("routing=b", 1)],
        metrics: vec![],
        comparisons: vec![],
        expectations: vec![],
        protocol,
        layout: "default".to_owned(),
        template: None,
        template_text: None,
    };
    let planned = |number| PlannedTrial { number, block: number / 2 + 1, treatment: number as usize % 2, boot: None };
    Header {
        format: FORMAT,
        tool_version: "0.1.0".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        sources: vec![("e.exp".to_owned(), "experiment e {\n}\n".to_owned())],
        design,
        order: (0..trials).map(planned).collect(),
        host: HostFacts::default(),
        published: Vec::new(),
        boots: Vec::new(),
    }
}

fn trial(number: u32, faults: Vec<Fault>) -> Trial {
    Trial {
        number,
        attempt: 0,
        sequence: number,
        block: number / 2 + 1,
        treatment: number as usize % 2,
        boot: None,
        started_at: "2026-01-01T00:00:01Z".to_owned(),
        duration_ns: 1_000_000_000,
        faults,
        processes: vec![],
        backgrounds: vec![],
        cpu_times: CpuTimes::default(),
        interrupts: vec![],
        softirqs: vec![],
        masks: MaskReadings::default(),
        settings: vec![],
        runner: RunnerCost::default(),
        mover: None,
    }
}

fn end() -> End {
    End {
        at: "2026-01-01T00:01:00Z".to_owned(),
        reason: "complete".to_owned(),
        restored: 3,
        not_restored: vec![],
        remarks: vec![],
    }
}

fn timed_out() -> Fault {
    Fault::TimedOut { process: "p".to_owned(), limit_ms: 5 }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("recording.jsonl")
    }

    fn write(&self, header: &Header, lines: &[Line]) -> PathBuf {
        let mut writer = Writer::create(&self.path(), header).unwrap();
        for line in lines {
            writer.append(line).unwrap();
        }
        self.path()
    }
}

#[test]
fn what_is_written_is_read_again() {
    let folder = Folder::new();
    let trials = [trial(0, vec![]), trial(1, vec![timed_out()])];
    let lines: Vec<Line> = trials.iter().cloned().map(Line::Trial).chain([Line::End(end())]).collect();
    let path = folder.write(&header(4), &lines);
    let recording = read(&path).unwrap();
    assert_eq!(recording.header, header(4));
    assert_eq!(recording.trials, trials);
    assert_eq!(recording.end, Some(end()));
    assert_eq!(recording.notes, Vec::<String>::new());
    assert_eq!(recording.length, std::fs::metadata(&path).unwrap().len());
}

#[test]
fn a_recording_that_is_there_is_never_overwritten() {
    let folder = Folder::new();
    let path = folder.write(&header(2), &[Line::Trial(trial(0, vec![]))]);
    let before = std::fs::read(&path).unwrap();
    let error = Writer::create(&path, &header(4)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 1, "no temporary file stays behind");
}

#[test]
fn a_torn_last_line_is_dropped_and_a_resumed_run_goes_on_in_its_place() {
    let folder = Folder::new();
    let path = folder.write(&header(4), &[Line::Trial(trial(0, vec![]))]);
    let whole = std::fs::metadata(&path).unwrap().len();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"line\":\"trial\",\"number\":1,\"att").unwrap();

    let recording = read(&path).unwrap();
    assert_eq!(recording.trials.len(), 1);
    assert_eq!(recording.length, whole);
    assert_eq!(recording.notes, ["line 3 was cut off while it was written and is left out"]);

    let mut writer = Writer::resume(&path, &recording).unwrap();
    let host = Box::<HostFacts>::default();
    writer.append(&Line::Resumed { at: "2026-01-02T00:00:00Z".to_owned(), host }).unwrap();
    writer.append(&Line::Trial(trial(1, vec![]))).unwrap();
    let recording = read(&path).unwrap();
    assert_eq!(recording.notes, Vec::<String>::new());
    assert_eq!(recording.trials, [trial(0, vec![]), trial(1, vec![])]);
    assert_eq!(recording.resumed.len(), 1);
}

#[test]
fn trials_without_a_valid_run_remain() {
    let folder = Folder::new();
    let lines =
        [trial(0, vec![]), trial(1, vec![timed_out()]), trial(1, vec![timed_out()]), trial(2, vec![])].map(Line::Trial);
    let recording = read(&folder.write(&header(4), &lines)).unwrap();
    let numbers: Vec<u32> = recording.remaining().iter().map(|planned| planned.number).collect();
    assert_eq!(numbers, [1, 3]);
    assert_eq!(recording.attempts(), BTreeMap::from([(0, 1), (1, 2), (2, 1)]));
}

#[test]
fn a_resumed_run_names_what_differs() {
    let folder = Folder::new();
    let recording = read(&folder.write(&header(4), &[])).unwrap();
    assert_eq!(recording.differences(&header(4)), Vec::<String>::new());

    let mut other = header(4);
    other.design.protocol.seed = 7;
    assert_eq!(recording.differences(&other), ["the seed: 1 recorded, 7 now"]);

    let mut other = header(4);
    other.sources[0].1 = "experiment e {\n  title \"x\"\n}\n".to_owned();
    assert_eq!(recording.differences(&other), ["the text of `e.exp`, first in line 2"]);

    let mut other = header(4);
    other.design.treatments[1].settings.push("irq 36 -> cpu 0".to_owned());
    assert_eq!(recording.differences(&other), ["the treatment `routing=b`: its settings or processes on this host"]);

    let mut other = header(4);
    other.design.factors[0].levels.push("c".to_owned());
    assert_eq!(recording.differences(&other), ["the design (factors, treatments, metrics or comparisons)"]);

    let mut other = header(4);
    other.order.swap(0, 1);
    assert_eq!(recording.differences(&other), ["the order of trials"]);

    let mut other = header(4);
    other.host.memory_bytes = Some(1);
    assert_eq!(recording.differences(&other), Vec::<String>::new());
}

fn error_of(text: &str) -> String {
    read_from(text.as_bytes(), Path::new("r.jsonl")).unwrap_err().to_string()
}

fn lines_of(header: &Header, lines: &[Line]) -> String {
    let bytes = [Line::Header(header.clone())].iter().chain(lines).flat_map(|line| to_bytes(line).unwrap()).collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn hostile_input_is_an_error_with_a_line_number() {
    assert_eq!(error_of(""), "r.jsonl: the recording has no header");
    assert_eq!(error_of("{\"header\":{\"format\":1"), "r.jsonl: the recording has no header");
    assert!(error_of("null\n").starts_with("r.jsonl: line 1 is not a line of a recording"));
    assert!(error_of("[[[[\n").starts_with("r.jsonl: line 1 is not a line of a recording"));
    let newer = lines_of(&Header { format: FORMAT + 1, ..header(2) }, &[]);
    assert_eq!(error_of(&newer), "r.jsonl: the recording has format 2, this irqlab reads up to 1; use a newer irqlab");
    assert_eq!(
        error_of("{\"header\":{\"format\":99,\"shape\":\"unknown\"}}\n"),
        "r.jsonl: the recording has format 99, this irqlab reads up to 1; use a newer irqlab"
    );

    let mut stray = trial(0, vec![]);
    stray.treatment = 9;
    let mut uneven = trial(0, vec![]);
    uneven.cpu_times.on = CpuSet::single(Cpu(0));
    let mut ragged = trial(0, vec![]);
    ragged.interrupts.push(CounterRow {
        label: "36".to_owned(),
        description: String::new(),
        on: CpuSet::single(Cpu(0)),
        counts: vec![1, 2],
        anomaly: None,
    });
    let mut huge = trial(0, vec![]);
    huge.interrupts.push(CounterRow {
        label: "36".to_owned(),
        description: String::new(),
        on: CpuSet::parse_list("0-1").unwrap(),
        counts: vec![u64::MAX, 1],
        anomaly: None,
    });
    for (bad, detail) in [
        (stray, "trial 0 is not planned like that"),
        (uneven, "0 CPU times for 1 CPUs"),
        (ragged, "row `36` has 2 counts for 1 CPUs"),
        (huge, "the counts of row `36` are beyond any counter"),
    ] {
        let text = lines_of(&header(2), &[Line::Trial(bad)]);
        assert_eq!(error_of(&text), format!("r.jsonl: line 2 does not fit the recording: {detail}"));
    }

    let mut planned = header(2);
    planned.order[0].treatment = 5;
    assert!(error_of(&lines_of(&planned, &[])).ends_with("planned trial 0 has a treatment that is not there"));
    let mut levels = header(2);
    levels.design.treatments[0].levels = vec![7];
    assert!(error_of(&lines_of(&levels, &[])).ends_with("a level that is not there"));
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let head = lines_of(&header(2), &[]);
    let endless = head.as_bytes().chain(BufReader::new(io::repeat(b'x')));
    let error = read_from(endless, Path::new("r.jsonl")).unwrap_err();
    assert!(matches!(error, ReadError::TooLong { line: 2, .. }), "{error}");
}

/// 256 CPUs, 16 named rows and 10 softirqs that count on every one, 500 device interrupts of which each CPU serves its own two.
/// Counts have one to five digits, evenly; ticks are those of ten seconds.
fn large_trial(number: u32) -> Trial {
    let all = CpuSet::parse_list("0-255").unwrap();
    let spread = |seed: u64| {
        let count = |cpu: u64| (cpu * 7919 + seed * 104_729 + u64::from(number)) % 99_991;
        (0..256_u64).map(|cpu| count(cpu) / 10_u64.pow((cpu % 5) as u32)).collect()
    };
    let named = (0..16_u64).map(|row| CounterRow {
        label: format!("R{row:02}"),
        description: String::new(),
        on: all.clone(),
        counts: spread(row),
        anomaly: None,
    });
    let numbered = (0..500_u64).map(|irq| CounterRow {
        label: (irq + 24).to_string(),
        description: format!("IR-PCI-MSIX-0000:3d:00.0 {irq}-edge ice-eth0-TxRx-{irq}"),
        on: CpuSet::single(Cpu(irq as u32 % 256)),
        counts: vec![irq * 977 % 100_000],
        anomaly: None,
    });
    let mut trial = trial(number, vec![]);
    trial.interrupts = named.chain(numbered).collect();
    let softirq = |row: u64| CounterRow {
        label: format!("SOFT{row}"),
        description: String::new(),
        on: all.clone(),
        counts: spread(row + 50),
        anomaly: None,
    };
    trial.softirqs = (0..10).map(softirq).collect();
    let ticks = |most: u64| (0..256_u64).map(|cpu| (cpu * 7 + u64::from(number)) % most).collect();
    trial.cpu_times = CpuTimes {
        hz: 100,
        on: all.clone(),
        user: ticks(900),
        system: ticks(90),
        idle: ticks(1000),
        iowait: ticks(10),
        irq: ticks(10),
        softirq: ticks(10),
        steal: ticks(1),
    };
    let pair =
        |cpu: u32| MaskGroup { mask: CpuSet::single(Cpu(cpu)), irqs: IrqList(vec![Irq(cpu + 24), Irq(cpu + 280)]) };
    trial.masks.effective_before = (0..256).map(pair).collect();
    let process = ProcessRecord {
        name: "loop".to_owned(),
        instance: 0,
        status: Some(0),
        signal: None,
        real_ns: 2_000_000_000,
        user_us: 1_000_000,
        sys_us: 1_000_000,
        max_rss_kib: 4096,
        voluntary_switches: 1_000_000,
        involuntary_switches: 12,
        minor_faults: 90,
        major_faults: 0,
        cpus: all,
        values: BTreeMap::new(),
        notes: BTreeMap::new(),
    };
    trial.processes = vec![process];
    trial
}

#[test]
fn a_hundred_trials_on_256_cpus_stay_under_five_megabytes() {
    let folder = Folder::new();
    let trials: Vec<Trial> = (0..100).map(large_trial).collect();
    let path = folder.write(&header(100), &trials.iter().cloned().map(Line::Trial).collect::<Vec<_>>());
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < 5_000_000, "{length} bytes");
    assert!(read(&path).unwrap().trials == trials, "nothing is lost by being said once");
}

fn two_stage(pilot_trials: u32) -> Header {
    let mut header = header(pilot_trials);
    header.design.protocol.until =
        Some(Until { metric: "p.x".to_owned(), within: 0.01, pilot: pilot_trials / 2, max: 3, decided: None });
    header
}

fn decision(numbers: &[u32]) -> Decision {
    let planned = |number: &u32| PlannedTrial {
        number: *number,
        block: number / 2 + 1,
        treatment: *number as usize % 2,
        boot: None,
    };
    Decision {
        at: "2026-01-01T00:00:30Z".to_owned(),
        treatment: Some(1),
        n: 2,
        spread: Some(0.02),
        needed: Some(9),
        blocks: 3,
        order: numbers.iter().map(planned).collect(),
    }
}

#[test]
fn a_decision_lengthens_the_order_and_a_resumed_run_keeps_to_it() {
    let folder = Folder::new();
    let header = two_stage(4);
    let mut lines: Vec<Line> = (0..4).map(|number| Line::Trial(trial(number, vec![]))).collect();
    lines.push(Line::Decided(decision(&[4, 5])));
    lines.push(Line::Trial(trial(4, vec![])));
    let recording = read(&folder.write(&header, &lines)).unwrap();
    assert_eq!(recording.header.order.len(), 6);
    assert_eq!(recording.remaining().iter().map(|planned| planned.number).collect::<Vec<_>>(), [5]);
    assert!(recording.header.design.protocol.until.as_ref().unwrap().decided.as_ref().unwrap().target_missed());
    assert_eq!(recording.differences(&header), [] as [&str; 0], "the same experiment, before its decision");
    let mut other = header.clone();
    other.order.swap(0, 1);
    assert_eq!(recording.differences(&other), ["the order of trials"]);
}

#[test]
fn a_decision_nobody_asked_for_is_refused() {
    for (header, decisions) in [
        (header(4), vec![decision(&[4, 5])]),
        (two_stage(4), vec![decision(&[4, 5]), decision(&[6, 7])]),
        (two_stage(4), vec![decision(&[3, 4])]),
        (two_stage(4), vec![Decision { blocks: 4, ..decision(&[4, 5]) }]),
    ] {
        let folder = Folder::new();
        let lines: Vec<Line> = decisions.into_iter().map(Line::Decided).collect();
        let error = read(&folder.write(&header, &lines)).unwrap_err();
        assert!(matches!(error, ReadError::Inconsistent { .. }), "{error}");
    }
}

#[test]
fn boots_asked_for_are_kept_until_one_happens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    let mut writer = Writer::create(&path, &header(2)).unwrap();
    let asked = |boot_id: &str| BootAsked {
        at: String::new(),
        boot_id: boot_id.to_owned(),
        planned: 1,
        missing: vec![],
        unwanted: vec![],
        command_line: None,
    };
    writer.append(&Line::End(end())).unwrap();
    writer.append(&Line::BootAsked(asked("a"))).unwrap();
    writer.append(&Line::BootAsked(asked("b"))).unwrap();
    let recording = read(&path).unwrap();
    assert_eq!(recording.asked, [asked("a"), asked("b")]);
    assert_eq!(recording.end, None, "a part is over, not the run");
    let boot = Boot {
        number: 1,
        planned: 1,
        at: String::new(),
        boot_id: Some("c".to_owned()),
        lab: None,
        host: HostFacts::default(),
        options: vec![],
        treatments: BTreeMap::new(),
    };
    writer.append(&Line::Boot(boot)).unwrap();
    assert_eq!(read(&path).unwrap().asked, []);
}
