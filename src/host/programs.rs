//! Programs on this host.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Whether a program is on `PATH`, or where its path says.
pub fn on_path(program: &str) -> bool {
    let executable = |path: PathBuf| {
        std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return executable(PathBuf::from(program));
    }
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| executable(folder.join(program))))
}
