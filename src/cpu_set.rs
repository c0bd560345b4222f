//! CPU and IRQ numbers, and sets of CPUs in the kernel's two text forms.

use std::collections::BTreeSet;
use std::fmt;

/// A logical CPU number as in `/sys/devices/system/cpu/cpuN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cpu(pub u32);

/// A Linux interrupt number as in `/proc/irq/N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Irq(pub u32);

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Irq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A set of CPUs. Shown in the list form of `smp_affinity_list` (`0-3,8`); empty shows as an empty text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct CpuSet(BTreeSet<u32>);

/// A text that is neither the kernel's list nor its mask form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a CPU {form}")]
pub struct CpuSetError {
    /// The text as given.
    pub text: String,
    /// `list` or `mask`.
    pub form: &'static str,
}

/// The largest CPU number a text may name: the kernel's own limit is `CONFIG_NR_CPUS` <= 8192 on every
/// architecture; anything larger is a mistake and must not allocate.
pub const MAX_CPU: u32 = 65_535;

/// The largest IRQ number a text may name; far beyond `nr_irqs` of any machine, small enough to hold in memory.
pub const MAX_IRQ: u32 = 1_048_575;

impl CpuSet {
    /// The set of no CPU.
    pub fn new() -> Self {
        CpuSet::default()
    }

    /// The set of one CPU.
    pub fn single(cpu: Cpu) -> Self {
        CpuSet(BTreeSet::from([cpu.0]))
    }

    /// Reads the list form: `0-3,8`, blanks and a newline around it allowed; an empty text is the empty set.
    pub fn parse_list(text: &str) -> Result<Self, CpuSetError> {
        let numbers = parse_numbers(text, MAX_CPU);
        numbers.map(CpuSet).ok_or_else(|| CpuSetError { text: text.trim().to_owned(), form: "list" })
    }

    /// Reads the mask form of `smp_affinity`: groups of at most eight hex digits, comma separated, the last
    /// group being CPUs 0 to 31 (lib/bitmap-str.c).
    pub fn parse_mask(text: &str) -> Result<Self, CpuSetError> {
        let error = || CpuSetError { text: text.trim().to_owned(), form: "mask" };
        let mut set = BTreeSet::new();
        for (group, digits) in text.trim().rsplit(',').enumerate() {
            if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(error());
            }
            let bits = u32::from_str_radix(digits, 16).map_err(|_| error())?;
            let base = u32::try_from(group).ok().filter(|group| *group <= MAX_CPU / 32).ok_or_else(error)? * 32;
            set.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| base + bit));
        }
        Ok(CpuSet(set))
    }

    /// Writes the mask form with the group and digit layout of `like`, a mask read from the same file, so that
    /// the kernel is never given more groups than it has. CPUs beyond that layout widen it.
    pub fn to_mask_like(&self, like: &str) -> String {
        let like = like.trim();
        let groups_like = like.split(',').count();
        let first_width = like.split(',').next().map_or(1, str::len).max(1);
        let groups = self.0.last().map_or(1, |cpu| *cpu as usize / 32 + 1).max(groups_like);
        let mut words = vec![0_u32; groups];
        for cpu in &self.0 {
            words[*cpu as usize / 32] |= 1 << (cpu % 32);
        }
        let first_width = if groups == groups_like { first_width } else { 1 };
        let mut parts = words.iter().rev();
        let first = parts.next().map(|word| format!("{word:0first_width$x}"));
        first.into_iter().chain(parts.map(|word| format!("{word:08x}"))).collect::<Vec<_>>().join(",")
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: Cpu) -> bool {
        self.0.contains(&cpu.0)
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: Cpu) {
        self.0.insert(cpu.0);
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<Cpu> {
        self.0.first().copied().map(Cpu)
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.0.iter().copied().map(Cpu)
    }

    /// CPUs in either set.
    #[must_use]
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.union(&other.0).copied().collect())
    }

    /// CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.intersection(&other.0).copied().collect())
    }

    /// CPUs in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.difference(&other.0).copied().collect())
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<Cpu> for CpuSet {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> Self {
        CpuSet(cpus.into_iter().map(|cpu| cpu.0).collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_list(self.0.iter().copied()))
    }
}

/// Reads numbers up to `max` in list form; `None` when the text is not a list.
pub fn parse_numbers(text: &str, max: u32) -> Option<BTreeSet<u32>> {
    let number = |text: &str| match text.trim() {
        digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse::<u32>().ok().filter(|number| *number <= max)
        }
        _ => None,
    };
    let mut numbers = BTreeSet::new();
    for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// The list form of ascending numbers: `0-3,8`.
pub fn to_list(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let parts: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_and_mask_forms_agree() {
        for (list, mask) in [("0", "00000001"), ("0-3,8", "0000010f"), ("31-32", "00000001,80000000"), ("", "0")] {
            let set = CpuSet::parse_list(list).unwrap();
            assert_eq!(CpuSet::parse_mask(mask).unwrap(), set);
            assert_eq!(set.to_string(), list);
            assert_eq!(set.to_mask_like(mask), mask);
        }
    }

    #[test]
    fn malformed_texts_are_refused() {
        for text in ["a", "3-1", "1-", "-1", "0,,1", "+1", "99999999999", "70000"] {
            assert!(CpuSet::parse_list(text).is_err(), "{text}");
        }
        for text in ["", "0x1", "123456789", "1,,2", "g", "+1"] {
            assert!(CpuSet::parse_mask(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_mask_keeps_the_width_of_the_host() {
        let set = CpuSet::single(Cpu(1));
        assert_eq!(set.to_mask_like("3"), "2");
        assert_eq!(set.to_mask_like("ff,ffffffff\n"), "00,00000002");
    }
}
