//! `irqlab lab`: what labs need on this machine.

use std::path::Path;

use clap::Subcommand;

use super::{Exit, print};
use crate::lab::kvm;
use crate::lab::tools::{self, Kernel, Tools};
use crate::recording::Accelerator;
use crate::settings;

#[derive(Debug, Subcommand)]
pub(super) enum LabCommand {
    /// Say what labs need that is missing here, the one command that installs it, and whether KVM works
    Check,
}

pub(super) fn lab(command: &LabCommand) -> Exit {
    match command {
        LabCommand::Check => check(),
    }
}

fn check() -> Exit {
    let (tools, kernel) = match found(None) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let speed = match kvm::accelerator(&tools, &settings::state_dir()) {
        (Accelerator::Kvm, _) => "KVM works: labs run at the speed of this machine".to_owned(),
        (Accelerator::Emulated, reason) => format!(
            "labs are emulated: {}\ninterrupt counts and routing are the real kernel's; timings say nothing of hardware",
            reason.unwrap_or_default()
        ),
    };
    let (qemu, vng, image) = (tools.qemu.display(), tools.vng.display(), kernel.image.display());
    let out = format!(
        "{:32} {qemu}\n{:32} {vng}\n{:32} {image}\n{speed}\n",
        tools.qemu_version,
        tools.vng_version,
        format!("kernel {}", kernel.version),
    );
    print::data(&out);
    Exit::Fine
}

/// The tools and the kernel, or everything that is missing said with the one command that installs it.
fn found(kernel: Option<&str>) -> Result<(Tools, Kernel), Exit> {
    let tools = programs()?;
    let kernel = tools.kernel(kernel).map_err(|lack| {
        print::error(lack);
        Exit::Host
    })?;
    Ok((tools, kernel))
}

/// The tools, or everything that is missing said with the one command that installs it.
pub(super) fn programs() -> Result<Tools, Exit> {
    Tools::find().map_err(|missing| {
        for missing in &missing {
            print::error(&missing.what);
        }
        let checkout = Path::new("tools/setup").exists() && Path::new("grammar/exp.pest").exists();
        let command = if checkout { "tools/setup lab".to_owned() } else { tools::install_command(&missing) };
        print::talk(&format!("install what labs need: {command}"));
        Exit::Host
    })
}
