//! `/proc/irq/N/smp_affinity` and `/proc/irq/default_smp_affinity`. Never writes to an interrupt that is not the one
//! it is taken for.

use super::journal::{Entry, Saved, Thing};
use super::{Back, Made, Refusal, System, kernel_file};
use crate::bind::IrqIdentity;
use crate::cpu_set::{CpuSet, Irq};
use crate::host::files::{Files, SystemError};

/// `default_smp_affinity`
pub(super) const DEFAULT: &str = "/proc/irq/default_smp_affinity";

/// How the journal begins to say where a mask may be found that is moved while a trial runs.
pub(super) const MOVING_OVER: &str = "moving over ";

/// Where the mask of an interrupt is.
pub(super) fn path(identity: &IrqIdentity) -> String {
    format!("/proc/irq/{}/smp_affinity", identity.irq)
}

/// Reads the mask of the interrupt, having made sure that it is this one.
pub(super) fn save(files: &dyn Files, identity: &IrqIdentity) -> Result<Saved, Refusal> {
    let path = path(identity);
    let now = files.read(&path).map_err(|error| Refusal::from(error).meaning_of(meaning))?;
    if let Some(other) = stranger(files, identity)? {
        let reason = format!("irq {} is now another interrupt: {other}", identity.irq);
        return Err(Refusal::because("set", &path, reason));
    }
    Ok(Saved::of_bytes(&now))
}

/// Whether the file holds the mask, however it is laid out.
pub(super) fn is_right(now: &Saved, mask: &CpuSet) -> bool {
    CpuSet::parse_mask(&kernel_file::text_of(now)).is_ok_and(|now| now == *mask)
}

/// Writes a mask in the layout of the file, and reads it back: success alone proves nothing, for old kernels throw the
/// interrupt controller's answer away.
pub(super) fn make(system: &dyn System, path: &str, mask: &CpuSet, now: &Saved) -> Result<Made, Refusal> {
    let meaning = if path == DEFAULT { kernel_file::meaning } else { meaning };
    let before = kernel_file::text_of(now);
    let text = mask.to_mask_like(&before);
    kernel_file::write(system, path, format!("{text}\n").as_bytes())
        .map_err(|error| Refusal::from(error).meaning_of(meaning))?;
    let found = Saved::of_bytes(&system.read(path)?);
    let shown = kernel_file::text_of(&found).trim().to_owned();
    if is_right(&found, mask) {
        return Ok(Made { found: shown, remark: None });
    }
    let refusal = Refusal::because("set", path, format!("`{text}` was written, and it reads `{shown}`"));
    let thrown_away = shown == before.trim();
    Err(refusal.meaning(thrown_away.then_some("the kernel said yes and threw the mask away")))
}

/// Puts exactly the old bytes back, to this interrupt only.
pub(super) fn put_back(system: &dyn System, identity: &IrqIdentity, entry: &Entry) -> Back {
    let path = path(identity);
    if !system.exists(&path) {
        return match system.read(&path) {
            Err(error) if !error.is_gone() => Back::Failed(error.into()),
            _ => Back::Gone(Some(format!("irq {} ({}) is gone", identity.irq, identity.actions.join(", ")))),
        };
    }
    match stranger(system, identity) {
        Err(error) => Back::Failed(error.into()),
        Ok(Some(other)) => {
            let was = identity.actions.join(", ");
            Back::Gone(Some(format!("irq {} was `{was}` and is now {other}: not written", identity.irq)))
        }
        Ok(None) => kernel_file::put_back(system, &path, &found_moving(system, &path, entry), meaning),
    }
}

/// The entry of a mask that was being moved when the runner was killed: it is ours wherever the mover may have left it.
fn found_moving(files: &dyn Files, path: &str, entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    let over = entry.new.as_deref().and_then(|new| new.strip_prefix(MOVING_OVER));
    if let (Some(Ok(over)), Ok(now)) = (over.map(CpuSet::parse_list), files.read_text(path))
        && CpuSet::parse_mask(&now).is_ok_and(|mask| mask.len() == 1 && mask.is_subset(&over))
    {
        entry.found = Some(now);
    }
    entry
}

/// The present identity of an interrupt, from `/sys/kernel/irq` (since 4.9). A fact the kernel does not have is empty;
/// one that cannot be read is an error, or a failed read would make a stranger of it.
pub(super) fn identity(files: &dyn Files, irq: Irq) -> Result<IrqIdentity, SystemError> {
    let text = |name: &str| match files.read_text(&format!("/sys/kernel/irq/{irq}/{name}")) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.is_gone() => Ok(String::new()),
        Err(error) => Err(error),
    };
    Ok(IrqIdentity {
        irq,
        actions: split_actions(&text("actions")?),
        chip: text("chip_name")?,
        hwirq: Some(text("hwirq")?).filter(|hwirq| !hwirq.is_empty()),
        device: None,
    })
}

/// Every interrupt whose mask can be set, and that mask.
pub(super) fn movable(system: &dyn System) -> Result<Vec<(Thing, Saved)>, SystemError> {
    let mut found = Vec::new();
    for name in system.list("/proc/irq")? {
        let Ok(irq) = name.parse::<u32>() else { continue };
        let identity = identity(system, Irq(irq))?;
        let path = path(&identity);
        if system.mode(&path).is_ok_and(|mode| mode & 0o200 != 0)
            && let Ok(mask) = system.read(&path)
        {
            found.push((Thing::of_irq(&identity), Saved::of_bytes(&mask)));
        }
    }
    Ok(found)
}

/// What stands at this number instead; `None` when it is the interrupt it is taken for. Facts that the kernel or the
/// record does not have are not compared.
fn stranger(files: &dyn Files, identity: &IrqIdentity) -> Result<Option<String>, SystemError> {
    if !files.exists(&format!("/sys/kernel/irq/{}/actions", identity.irq)) {
        return stranger_by_row(files, identity);
    }
    let now = self::identity(files, identity.irq)?;
    let actions = now.actions.join(",");
    let same_actions = actions == split_actions(&identity.actions.join(",")).join(",");
    let same_chip = now.chip.is_empty() || identity.chip.is_empty() || now.chip == identity.chip.trim();
    let same_hwirq = match (&now.hwirq, &identity.hwirq) {
        (Some(now), Some(was)) => digits(now) == digits(was),
        _ => true,
    };
    let other = format!("`{actions}` of {} {}", now.chip, now.hwirq.as_deref().unwrap_or_default());
    Ok((!(same_actions && same_chip && same_hwirq)).then(|| other.trim().to_owned()))
}

/// The same from `/proc/interrupts`, for kernels without `/sys/kernel/irq`.
fn stranger_by_row(files: &dyn Files, identity: &IrqIdentity) -> Result<Option<String>, SystemError> {
    let table = files.read_text("/proc/interrupts")?;
    let label = identity.irq.to_string();
    let rows = table.lines().filter_map(|line| line.split_once(':'));
    let row = rows.filter(|(name, _)| name.trim() == label).map(|(_, rest)| rest).next();
    let Some(row) = row else {
        return Ok((!identity.actions.is_empty()).then(|| "without a handler".to_owned()));
    };
    let ends_with_actions = row.trim_end().ends_with(&identity.actions.join(", "));
    let same = ends_with_actions && kernel_file::words(row).contains(&kernel_file::words(&identity.chip));
    let description = row.split_whitespace().skip_while(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    Ok((!same).then(|| format!("`{}`", description.collect::<Vec<_>>().join(" "))))
}

fn split_actions(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// `1` of `1-edge`.
fn digits(hwirq: &str) -> &str {
    let hwirq = hwirq.trim();
    hwirq
        .split(|character: char| !character.is_ascii_digit())
        .next()
        .filter(|digits| !digits.is_empty())
        .unwrap_or(hwirq)
}

/// What an errno of a mask's write means (kernel/irq/proc.c, kernel/irq/manage.c, lib/bitmap-str.c).
pub(super) fn meaning(errno: i32) -> Option<&'static str> {
    match errno {
        // EPERM since 6.12, EIO before.
        1 | 5 => Some("managed or per-CPU interrupt: the kernel does not let its mask be set"),
        2 => Some("the interrupt is gone"),
        11 | 16 => Some("the interrupt controller stayed busy with an earlier move"),
        13 => Some("not permitted: run as root; where you are root, the kernel does not let this mask be set"),
        22 => Some("no CPU of the mask is online, or the interrupt controller cannot route"),
        28 => Some("no free interrupt vector on that CPU"),
        30 => Some("/proc/irq is read-only here: a container, or a unit with ProtectKernelTunables"),
        75 => Some("the mask is wider than the kernel's"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hardware_number_is_compared_without_its_trigger() {
        assert_eq!(digits("1-edge"), digits("1"));
        assert_ne!(digits("1-edge"), digits("11"));
        assert_eq!(digits("Edge"), "Edge");
    }
}
