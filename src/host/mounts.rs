//! What is mounted where: cpuset hierarchies, and whether `/proc/irq` can be written.

use std::collections::HashMap;

use procfs::FromBufRead;
use procfs::process::MountInfo;

use super::reader::Reader;
use crate::recording::facts::CpusetSupport;

/// One mount, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where.
    pub(super) point: String,
    /// File system: `proc`, `cgroup2` …
    pub(super) kind: String,
    /// Options of the file system: `cpuset` for a v1 hierarchy.
    pub(super) options: Vec<String>,
    /// Mounted read-only, or the file system is.
    pub(super) read_only: bool,
}

/// Mounts in the order they were made: `/proc/self/mountinfo`, else `/proc/mounts`.
pub(super) fn read(reader: &Reader) -> Vec<Mount> {
    if let Some(text) = reader.bytes("/proc/self/mountinfo") {
        let text = String::from_utf8_lossy(&text).into_owned();
        return text.lines().filter_map(|line| MountInfo::from_line(line).ok()).map(from_mountinfo).collect();
    }
    let Some(text) = reader.bytes("/proc/mounts") else { return Vec::new() };
    let entries = Vec::<procfs::MountEntry>::from_buf_read(text.as_slice()).unwrap_or_default();
    let entries = entries.into_iter().map(|entry| Mount {
        point: unescape(&entry.fs_file),
        kind: entry.fs_vfstype,
        read_only: entry.fs_mntops.contains_key("ro"),
        options: names(entry.fs_mntops),
    });
    entries.collect()
}

/// Where the cpuset controller is.
pub(super) fn cpuset(reader: &Reader, mounts: &[Mount]) -> CpusetSupport {
    let has_cpuset = |mount: &&Mount| {
        let controllers = reader.text(&format!("{}/cgroup.controllers", mount.point));
        controllers.is_some_and(|controllers| controllers.split_whitespace().any(|name| name == "cpuset"))
    };
    let v1 = mounts.iter().find(|mount| match &*mount.kind {
        "cgroup" => mount.options.iter().any(|option| option == "cpuset"),
        kind => kind == "cpuset",
    });
    let v2 = mounts.iter().filter(|mount| mount.kind == "cgroup2").find(has_cpuset);
    CpusetSupport { v1: v1.map(|mount| mount.point.clone()), v2: v2.map(|mount| mount.point.clone()) }
}

/// Whether the mount that holds `/proc/irq` is not read-only. The last one made over a place hides the others.
pub(super) fn irq_writable(mounts: &[Mount]) -> bool {
    let holds = |mount: &&Mount| {
        let point = mount.point.trim_end_matches('/');
        "/proc/irq".strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let holder = mounts.iter().filter(holds).max_by_key(|mount| mount.point.trim_end_matches('/').len());
    holder.is_none_or(|mount| !mount.read_only)
}

fn from_mountinfo(info: MountInfo) -> Mount {
    Mount {
        point: unescape(&info.mount_point.to_string_lossy()),
        kind: info.fs_type,
        read_only: info.mount_options.contains_key("ro") || info.super_options.contains_key("ro"),
        options: names(info.super_options),
    }
}

fn names(options: HashMap<String, Option<String>>) -> Vec<String> {
    options.into_keys().collect()
}

/// Undoes the kernel's `\040` for a blank (`mangle_path` in `fs/seq_file.c`).
fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        result.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(u8::is_ascii);
        result.push(code.map_or('\\', char::from));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::files::Root;

    fn host(mountinfo: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        dir
    }

    #[test]
    fn both_cpuset_hierarchies_are_found_by_what_they_are_and_not_by_where() {
        let dir = host(
            "22 27 0:21 / /proc rw - proc proc rw\n\
             31 27 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             nonsense\n\
             32 27 0:31 / /dev/cp\\040set rw,relatime shared:5 - cgroup none rw,cpuset,noprefix\n\
             33 27 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        let root = Root::new(dir.path());
        let reader = Reader::new(&root);
        let mounts = read(&reader);
        assert_eq!(cpuset(&reader, &mounts), CpusetSupport { v1: Some("/dev/cp set".to_owned()), v2: None });
        std::fs::create_dir_all(dir.path().join("sys/fs/cgroup/unified")).unwrap();
        std::fs::write(dir.path().join("sys/fs/cgroup/unified/cgroup.controllers"), "cpu cpuset io\n").unwrap();
        assert_eq!(cpuset(&reader, &mounts).v2.as_deref(), Some("/sys/fs/cgroup/unified"));
        assert!(irq_writable(&mounts));
    }

    #[test]
    fn a_read_only_mount_over_proc_irq_is_seen() {
        for (mountinfo, writable) in [
            ("1 0 0:21 / /proc rw - proc proc rw\n2 1 0:21 /irq /proc/irq ro - proc proc rw\n", false),
            ("1 0 0:21 / /proc ro - proc proc rw\n", false),
            ("1 0 0:21 / / ro - ext4 /dev/vda rw\n2 1 0:21 / /proc rw - proc proc rw\n", true),
            ("1 0 0:21 / /proc rw - proc proc rw\n2 1 0:21 / /proc/irqx ro - proc proc rw\n", true),
            ("", true),
        ] {
            let dir = host(mountinfo);
            assert_eq!(irq_writable(&read(&Reader::new(&Root::new(dir.path())))), writable, "{mountinfo}");
        }
    }
}
