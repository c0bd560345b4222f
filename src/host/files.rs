//! Reading kernel files below a root.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// The host refused, or went away. `path` and the raw errno are always kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct SystemError {
    /// `read`, `write`, `list`, `open` …
    pub action: &'static str,
    /// The path on the host, without the root.
    pub path: PathBuf,
    /// With the raw errno.
    pub source: io::Error,
}

impl SystemError {
    /// Joins the parts.
    pub fn new(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        SystemError { action, path: path.into(), source }
    }

    /// The raw errno, 0 where there is none.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }

    /// Whether the thing does not exist (ENOENT, ENODEV, ESRCH).
    pub fn is_gone(&self) -> bool {
        matches!(self.errno(), 2 | 3 | 19) || self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Read access to a host. Paths are absolute on the host (`/proc/interrupts`); implementations add the root.
pub trait Files {
    /// Whole content, read to the end in one open.
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError>;

    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> Result<Vec<String>, SystemError>;

    /// Permission bits, symlinks followed (`0o644`).
    fn mode(&self, path: &str) -> Result<u32, SystemError>;

    /// Where a symlink finally leads, as an absolute host path (`/sys/devices/pci0000:00/…`).
    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError>;

    /// Whether the path is there.
    fn exists(&self, path: &str) -> bool {
        self.mode(path).is_ok()
    }

    /// Whether this is the running host, so that the runner's own architecture is the host's.
    fn is_live(&self) -> bool {
        false
    }

    /// Content as text without the final newline; invalid UTF-8 becomes U+FFFD.
    fn read_text(&self, path: &str) -> Result<String, SystemError> {
        let text = String::from_utf8_lossy(&self.read(path)?).into_owned();
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

/// A host below a folder; `/` is the running one.
///
/// Below any other root a path is resolved as inside a chroot: an absolute symlink starts at the root again and `..`
/// stops there, so that no captured tree leads to a file of the host that reads it.
#[derive(Debug, Clone)]
pub struct Root {
    root: PathBuf,
    modes: OnceLock<BTreeMap<String, u32>>,
}

/// Name of the file at the root of a captured tree that holds the permission bits a version control system or an
/// unpacker would lose: lines of octal mode, blank, host path.
pub const MODES_FILE: &str = "modes";

/// No kernel file read here comes near: `/proc/interrupts` of 8,192 CPUs and 10,000 interrupts has 900 MB on paper and
/// 20 MB in the field. A larger file is a mistake or bait.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// As many as the kernel itself follows (`MAXSYMLINKS`, include/linux/namei.h).
const MAX_SYMLINKS: u32 = 40;

const ELOOP: i32 = 40;
const EFBIG: i32 = 27;

impl Root {
    /// The host whose files lie below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Root { root: root.into(), modes: OnceLock::new() }
    }

    /// Whether this is the running host.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The real path of a host path, as text: symlinks are not looked at.
    pub fn join(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The real path behind a host path, symlinks followed inside the root.
    fn locate(&self, path: &str) -> io::Result<PathBuf> {
        if self.is_live() {
            return Ok(self.join(path));
        }
        Ok(self.root.join(self.inside(path)?))
    }

    /// Follows symlinks below the root. The result is relative to it. A link whose target was not captured is
    /// followed all the same; a path that is not there at all is an error.
    fn inside(&self, path: &str) -> io::Result<PathBuf> {
        let mut pending: VecDeque<PathBuf> = parts(Path::new(path)).collect();
        let mut found = PathBuf::new();
        let mut followed = 0;
        while let Some(part) = pending.pop_front() {
            if part == Path::new("..") {
                found.pop();
                continue;
            }
            let next = found.join(&part);
            let link = match fs::symlink_metadata(self.root.join(&next)) {
                Ok(metadata) => metadata.is_symlink(),
                Err(error) if followed > 0 && error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            };
            if !link {
                found = next;
                continue;
            }
            followed += 1;
            if followed > MAX_SYMLINKS {
                return Err(io::Error::from_raw_os_error(ELOOP));
            }
            let target = fs::read_link(self.root.join(&next))?;
            if target.is_absolute() {
                found = PathBuf::new();
            }
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                pending.push_front(part);
            }
        }
        Ok(found)
    }

    fn recorded_mode(&self, path: &str) -> Option<u32> {
        if self.is_live() {
            return None;
        }
        let modes = self.modes.get_or_init(|| {
            let text = read_bounded(&self.root.join(MODES_FILE)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let entries = text.lines().filter_map(|line| line.split_once(' '));
            entries.filter_map(|(mode, path)| Some((path.to_owned(), u32::from_str_radix(mode, 8).ok()?))).collect()
        });
        modes.get(path).copied()
    }
}

impl Files for Root {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        let read = self.locate(path).and_then(|place| {
            if !self.is_live() && !fs::metadata(&place)?.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
            read_bounded(&place)
        });
        read.map_err(|source| SystemError::new("read", path, source))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SystemError> {
        let list = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(self.locate(path)?)? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort_unstable();
            Ok(names)
        };
        list().map_err(|source| SystemError::new("list", path, source))
    }

    fn mode(&self, path: &str) -> Result<u32, SystemError> {
        let metadata = self.locate(path).and_then(fs::metadata);
        let mode = metadata.map(|metadata| metadata.permissions().mode() & 0o7777);
        let mode = mode.map_err(|source| SystemError::new("look at", path, source))?;
        Ok(self.recorded_mode(path).unwrap_or(mode))
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError> {
        let resolved = if self.is_live() {
            fs::canonicalize(self.join(path))
        } else {
            self.inside(path).map(|inside| Path::new("/").join(inside))
        };
        resolved.map_err(|source| SystemError::new("resolve", path, source))
    }

    fn is_live(&self) -> bool {
        Root::is_live(self)
    }
}

fn parts(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(|part| PathBuf::from(part.as_os_str()))
}

fn read_bounded(place: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16 * 1024);
    File::open(place)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::from_raw_os_error(EFBIG));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/devices/pci0000:00/0000:00:05.0")).unwrap();
        fs::create_dir_all(dir.path().join("sys/class/net")).unwrap();
        fs::write(dir.path().join("sys/devices/pci0000:00/0000:00:05.0/irq"), "11\n").unwrap();
        dir
    }

    #[test]
    fn a_symlink_never_leads_out_of_a_captured_root() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let dir = tree();
        let class = dir.path().join("sys/class/net");
        symlink(outside.path().join("secret"), class.join("absolute")).unwrap();
        symlink(format!("../../../../../../..{}", outside.path().join("secret").display()), class.join("climbing"))
            .unwrap();
        symlink(outside.path(), class.join("folder")).unwrap();
        let root = Root::new(dir.path());
        for path in ["absolute", "climbing", "folder/secret"] {
            assert!(root.read(&format!("/sys/class/net/{path}")).unwrap_err().is_gone(), "{path}");
        }
        assert!(root.read("/sys/../../../../../../../../../../etc/passwd").is_err());
    }

    #[test]
    fn links_are_followed_as_the_host_would() {
        let dir = tree();
        let class = dir.path().join("sys/class/net");
        symlink("/sys/devices/pci0000:00/0000:00:05.0", class.join("absolute")).unwrap();
        symlink("../../devices/pci0000:00/0000:00:05.0", class.join("relative")).unwrap();
        symlink("../../bus/pci/drivers/e1000", class.join("dangling")).unwrap();
        symlink("loop", class.join("loop")).unwrap();
        let root = Root::new(dir.path());
        for name in ["absolute", "relative"] {
            let path = format!("/sys/class/net/{name}");
            assert_eq!(root.resolve(&path).unwrap(), Path::new("/sys/devices/pci0000:00/0000:00:05.0"));
            assert_eq!(root.read_text(&format!("{path}/irq")).unwrap(), "11");
        }
        assert_eq!(root.resolve("/sys/class/net/dangling").unwrap(), Path::new("/sys/bus/pci/drivers/e1000"));
        assert_eq!(root.read("/sys/class/net/loop").unwrap_err().errno(), ELOOP);
        assert!(root.resolve("/sys/class/net/absent").unwrap_err().is_gone());
        assert_eq!(root.list("/sys/class/net").unwrap(), ["absolute", "dangling", "loop", "relative"]);
    }

    #[test]
    fn recorded_modes_outlive_a_checkout_and_devices_are_not_opened() {
        let dir = tree();
        fs::write(dir.path().join(MODES_FILE), "444 /sys/devices/pci0000:00/0000:00:05.0/irq\nx\n9 /y\n").unwrap();
        let root = Root::new(dir.path());
        assert_eq!(root.mode("/sys/devices/pci0000:00/0000:00:05.0/irq").unwrap(), 0o444);
        nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(root.read("/pipe").unwrap_err().source.kind(), io::ErrorKind::InvalidInput);
    }
}
