//! Programs and kernels that labs need: where they are, what is missing, and what installs it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::bounded::ask;

/// Where `tools/setup lab` puts virtme-ng, in an environment of its own; one of a user's own stands below his home.
pub const VNG_ENVIRONMENT: &str = "/opt/irqlab/vng";

/// What is installed there; `tools/setup` names the same.
const VNG_RELEASE: &str = "virtme-ng==1.42";

/// The same below a home folder.
const VNG_IN_HOME: &str = ".local/share/irqlab/vng";

/// Time a program has to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// Programs the host and the guest need beside QEMU and virtme-ng, and the Debian package of each. The guest sees the
/// host's files.
const PROGRAMS: &[(&str, &str)] =
    &[("busybox", "busybox-static"), ("modprobe", "kmod"), ("ip", "iproute2"), ("mkfs.ext4", "e2fsprogs")];

/// The programs of labs, found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// `qemu-system-x86_64`
    pub qemu: PathBuf,
    /// `QEMU emulator version 7.2.22`
    pub qemu_version: String,
    /// `vng`
    pub vng: PathBuf,
    /// `virtme-ng 1.42`
    pub vng_version: String,
    /// The `PATH` that `vng` has to be started with: it looks there for `virtme-run`, which stands beside it.
    pub path: OsString,
}

/// A kernel that labs can boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The image.
    pub image: PathBuf,
    /// Its release, `6.1.0-57-amd64`.
    pub version: String,
}

/// Something that labs need and this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What, and what is wrong with it.
    pub what: String,
    /// How to get it.
    pub remedy: Remedy,
}

/// Where something missing comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// A Debian package.
    Package(&'static str),
    /// virtme-ng from `PyPI`, in an environment of its own.
    Vng,
}

/// The one command that installs all that is missing, for a machine without the project's `tools/setup`.
pub fn install_command(missing: &[Missing]) -> String {
    let mut packages: Vec<&str> = Vec::new();
    for missing in missing {
        let package = match missing.remedy {
            Remedy::Package(package) => package,
            Remedy::Vng => "python3-venv",
        };
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    let mut command = format!("sudo apt-get install -y {}", packages.join(" "));
    if missing.iter().any(|missing| missing.remedy == Remedy::Vng) {
        let pip = format!(
            " && sudo python3 -m venv {VNG_ENVIRONMENT} && sudo {VNG_ENVIRONMENT}/bin/pip install {VNG_RELEASE}"
        );
        command.push_str(&pip);
    }
    command
}

impl Tools {
    /// Finds them: `vng` at `IRQLAB_VNG`, on `PATH`, or in one of the environments of its own; all else on `PATH`.
    /// Everything that is missing is said at once, a kernel that labs can boot too.
    pub fn find() -> Result<Tools, Vec<Missing>> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = Folders::of_the_host();
        let mut missing = Vec::new();
        let qemu = program("qemu-system-x86_64", Remedy::Package("qemu-system-x86"), &path);
        let qemu = qemu.map_err(|lack| missing.push(lack)).ok();
        let vng = vng(&path).map_err(|lack| missing.push(lack)).ok();
        for (name, package) in PROGRAMS {
            if let Err(lack) = on_path(name, &path).ok_or_else(|| lacking(name, Remedy::Package(package))) {
                missing.push(lack);
            }
        }
        if let Err(what) = folders.kernel(None) {
            missing.push(Missing { what, remedy: Remedy::Package("linux-image-amd64") });
        }
        let (Some((qemu, qemu_version)), Some((vng, vng_version)), true) = (qemu, vng, missing.is_empty()) else {
            return Err(missing);
        };
        let beside = vng.parent().map(Path::to_path_buf).unwrap_or_default();
        let path = env::join_paths([beside].into_iter().chain(env::split_paths(&path))).unwrap_or(path);
        Ok(Tools { qemu, qemu_version, vng, vng_version, path })
    }

    /// The kernel asked for, by its version or the path of its image, else the newest that labs can boot, by its
    /// version and not by what runs here. `Err` says what is wrong and what to do.
    pub fn kernel(&self, wanted: Option<&str>) -> Result<Kernel, String> {
        Folders::of_the_host().kernel(wanted)
    }

    /// QEMU's version as numbers, where it can be read.
    pub fn qemu_release(&self) -> Option<(u32, u32)> {
        let number =
            self.qemu_version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut parts = number.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??))
    }
}

/// Where kernels and their modules are.
struct Folders {
    boot: PathBuf,
    modules: PathBuf,
}

impl Folders {
    fn of_the_host() -> Self {
        Folders { boot: PathBuf::from("/boot"), modules: PathBuf::from("/lib/modules") }
    }

    fn kernel(&self, wanted: Option<&str>) -> Result<Kernel, String> {
        let Some(wanted) = wanted else { return self.newest() };
        let image =
            if wanted.contains('/') { PathBuf::from(wanted) } else { self.boot.join(format!("vmlinuz-{wanted}")) };
        if !image.is_file() {
            let known: Vec<String> = self.images().into_iter().map(|kernel| kernel.version).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!(
                "there is no kernel {}; below {} there is {known}",
                image.display(),
                self.boot.display()
            ));
        }
        let name = image.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let version = name.split_once('-').map(|(_, version)| version.to_owned());
        let version = version.ok_or_else(|| {
            format!("the name of {} does not tell its version: name it vmlinuz-VERSION", image.display())
        })?;
        let kernel = Kernel { image, version };
        self.lacks(&kernel).map_or(Ok(kernel), Err)
    }

    fn newest(&self) -> Result<Kernel, String> {
        let mut lacks = Vec::new();
        for kernel in self.images() {
            match self.lacks(&kernel) {
                None => return Ok(kernel),
                Some(lack) => lacks.push(lack),
            }
        }
        if lacks.is_empty() {
            return Err(format!("there is no kernel below {}", self.boot.display()));
        }
        Err(format!("no kernel that a lab can boot: {}", lacks.join("; ")))
    }

    /// Kernels, the newest first.
    fn images(&self) -> Vec<Kernel> {
        let entries = fs::read_dir(&self.boot).into_iter().flatten().flatten();
        let mut kernels: Vec<Kernel> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let version = name.strip_prefix("vmlinuz-")?.to_owned();
                Some(Kernel { image: entry.path(), version })
            })
            .collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(version_key(&kernel.version)));
        kernels
    }

    /// Why labs cannot boot it, if they cannot.
    fn lacks(&self, kernel: &Kernel) -> Option<String> {
        let version = &kernel.version;
        if fs::File::open(&kernel.image).is_err() {
            return Some(format!("{} cannot be read", kernel.image.display()));
        }
        let modules = self.modules.join(version);
        if !modules.is_dir() {
            return Some(format!("{version} has no modules in {}", modules.display()));
        }
        // Built in or loaded: a guest has no file system without them.
        let named = |list: &str, module: &str| {
            let list = fs::read_to_string(modules.join(list)).unwrap_or_default();
            list.lines().any(|line| line.split(':').next().is_some_and(|path| is_module(path, module)))
        };
        let has = |module: &str| named("modules.dep", module) || named("modules.builtin", module);
        let absent: Vec<&str> =
            ["9p", "9pnet_virtio", "virtio_pci"].into_iter().filter(|module| !has(module)).collect();
        if absent.is_empty() {
            return None;
        }
        let cloud = if version.contains("cloud") { ": a cloud kernel leaves them out" } else { "" };
        Some(format!("{version} lacks the modules {}{cloud}", absent.join(", ")))
    }
}

/// Whether a line of `modules.dep` or `modules.builtin` is of that module: its file name without endings.
fn is_module(path: &str, module: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split_once(".ko").is_some_and(|(stem, _)| stem.replace('-', "_") == module)
}

/// Orders versions as people do: numbers by value, `6.10` behind `6.9`, a release candidate before its release.
fn version_key(version: &str) -> Vec<(u8, u64, String)> {
    let mut key = Vec::new();
    let mut rest = version;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        if digits {
            key.push((2, part.parse().unwrap_or(u64::MAX), String::new()));
        } else if part.trim_matches(['-', '~', '.', '_']).starts_with("rc") {
            key.push((0, 0, part.to_owned()));
        } else {
            key.push((1, 0, part.to_owned()));
        }
        rest = behind;
    }
    // The end of a version stands between a release candidate and anything else.
    key.push((1, 0, String::new()));
    key
}

/// `vng` and its version. Each is tried by running it: an environment breaks when its Python is replaced.
fn vng(path: &OsString) -> Result<(PathBuf, String), Missing> {
    let mut places: Vec<PathBuf> = Vec::new();
    places.extend(env::var_os("IRQLAB_VNG").filter(|named| !named.is_empty()).map(PathBuf::from));
    places.extend(on_path("vng", path));
    places.push(Path::new(VNG_ENVIRONMENT).join("bin/vng"));
    places.extend(env::var_os("HOME").map(|home| Path::new(&home).join(VNG_IN_HOME).join("bin/vng")));
    let mut broken = None;
    for place in places.into_iter().filter(|place| is_program(place)) {
        match version(&place) {
            Ok(version) => return Ok((place, version)),
            Err(why) => broken = broken.or(Some(format!("vng does not run: {} {why}", place.display()))),
        }
    }
    let what = broken.unwrap_or_else(|| "vng (virtme-ng) is not installed".to_owned());
    Err(Missing { what, remedy: Remedy::Vng })
}

fn program(name: &str, remedy: Remedy, path: &OsString) -> Result<(PathBuf, String), Missing> {
    let place = on_path(name, path).ok_or_else(|| lacking(name, remedy))?;
    match version(&place) {
        Ok(version) => Ok((place, version)),
        Err(why) => Err(Missing { what: format!("{name} does not run: {} {why}", place.display()), remedy }),
    }
}

fn lacking(name: &str, remedy: Remedy) -> Missing {
    Missing { what: format!("{name} is not installed"), remedy }
}

/// The first line of what `--version` says, without a packager's words in brackets.
fn version(program: &Path) -> Result<String, String> {
    let answer = ask(Command::new(program).arg("--version"), VERSION_LIMIT).map_err(|error| error.to_string())?;
    let line = answer.text.lines().next().unwrap_or_default();
    if !answer.status.success() || line.is_empty() {
        return Err(format!("--version: {}: {}", answer.status, answer.text.lines().last().unwrap_or_default()));
    }
    Ok(line.split(" (").next().unwrap_or(line).to_owned())
}

/// A program on `path`, or in the folders of root's programs, which users' paths leave out.
fn on_path(name: &str, path: &OsString) -> Option<PathBuf> {
    let of_root = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let folders = env::split_paths(path).chain(of_root).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|place| is_program(place))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/boot` and `/lib/modules` with kernels; a name with `!` has no 9p module.
    fn folders(versions: &[&str]) -> (tempfile::TempDir, Folders) {
        let place = tempfile::tempdir().unwrap();
        let folders = Folders { boot: place.path().join("boot"), modules: place.path().join("modules") };
        fs::create_dir(&folders.boot).unwrap();
        for version in versions {
            let lacking = version.ends_with('!');
            let version = version.trim_end_matches('!');
            fs::write(folders.boot.join(format!("vmlinuz-{version}")), "").unwrap();
            let modules = folders.modules.join(version);
            fs::create_dir_all(&modules).unwrap();
            let dep = "kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz\nkernel/net/9p/9pnet_virtio.ko:\n";
            fs::write(modules.join("modules.dep"), if lacking { "kernel/a/b9p.ko: kernel/fs/9p.ko\n" } else { dep })
                .unwrap();
            fs::write(modules.join("modules.builtin"), "kernel/drivers/virtio/virtio-pci.ko\n").unwrap();
        }
        (place, folders)
    }

    #[test]
    fn the_newest_kernel_is_the_one_with_the_highest_number() {
        let (_place, folders) = folders(&["6.9.7-amd64", "6.10.2-amd64", "6.1.0-57-amd64", "6.10.2-rc1-amd64"]);
        assert_eq!(folders.kernel(None).unwrap().version, "6.10.2-amd64");
        let order: Vec<String> = folders.images().into_iter().map(|kernel| kernel.version).collect();
        assert_eq!(order, ["6.10.2-amd64", "6.10.2-rc1-amd64", "6.9.7-amd64", "6.1.0-57-amd64"]);
    }

    #[test]
    fn a_kernel_without_9p_is_passed_over_and_named_when_asked_for() {
        let (_place, folders) = folders(&["6.12.1-cloud-amd64!", "6.1.0-57-amd64"]);
        assert_eq!(folders.kernel(None).unwrap().version, "6.1.0-57-amd64");
        let refused = folders.kernel(Some("6.12.1-cloud-amd64")).unwrap_err();
        assert_eq!(refused, "6.12.1-cloud-amd64 lacks the modules 9p, 9pnet_virtio: a cloud kernel leaves them out");
    }

    #[test]
    fn a_kernel_that_is_not_there_is_answered_with_those_that_are() {
        let (_place, folders) = folders(&["6.1.0-57-amd64"]);
        let refused = folders.kernel(Some("5.10.0-9-amd64")).unwrap_err();
        assert!(refused.ends_with("there is 6.1.0-57-amd64"), "{refused}");
    }

    #[test]
    fn one_command_installs_all_that_is_missing() {
        let lacks = [
            lacking("qemu-system-x86_64", Remedy::Package("qemu-system-x86")),
            Missing { what: "vng".to_owned(), remedy: Remedy::Vng },
        ];
        assert_eq!(
            install_command(&lacks),
            "sudo apt-get install -y qemu-system-x86 python3-venv && sudo python3 -m venv /opt/irqlab/vng && \
             sudo /opt/irqlab/vng/bin/pip install virtme-ng==1.42"
        );
    }

    #[test]
    fn a_version_is_read_without_the_packagers_words() {
        let release = |text: &str| {
            Tools {
                qemu: PathBuf::new(),
                qemu_version: text.to_owned(),
                vng: PathBuf::new(),
                vng_version: String::new(),
                path: OsString::new(),
            }
            .qemu_release()
        };
        assert_eq!(release("QEMU emulator version 7.2.22"), Some((7, 2)));
        assert_eq!(release("QEMU emulator version 10.0.2"), Some((10, 0)));
        assert_eq!(release("something"), None);
    }
}
