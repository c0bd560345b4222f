//! Which experiments the command line means, loaded and checked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{Exit, Selection, check, files, print};
use crate::bind;
use crate::check::{self as checker, Options};
use crate::design::Experiment;
use crate::host::{self, files::Root};
use crate::source::Sources;

/// One experiment to plan or run.
#[derive(Debug)]
pub(super) struct Selected {
    /// Its file.
    pub path: PathBuf,
    /// The texts its spans point into.
    pub sources: Rc<Sources>,
    /// The experiment, `--seed` put in.
    pub experiment: Experiment,
}

/// Loads the files; says what is wrong with any, and stops then.
pub(super) fn select(selection: &Selection) -> Result<Vec<Selected>, Exit> {
    let files = files::experiments(&selection.paths).map_err(|error| {
        print::error(error);
        Exit::Usage
    })?;
    let options = Options { params: selection.params.set.clone() };
    let mut selected: Vec<Selected> = Vec::new();
    let mut exit = Exit::Fine;
    for path in files {
        match checker::load(&path, &options) {
            Ok(checked) => {
                let sources = Rc::new(checked.sources);
                selected.extend(checked.experiments.into_iter().map(|experiment| Selected {
                    path: path.clone(),
                    sources: Rc::clone(&sources),
                    experiment,
                }));
            }
            Err(error) => exit = exit.and(check::load_error(&error)),
        }
    }
    if exit != Exit::Fine {
        return Err(exit);
    }
    only(&mut selected, &selection.only)?;
    unique(&selected)?;
    for selected in &mut selected {
        if let Some(seed) = selection.seed {
            selected.experiment.protocol.seed = seed;
        }
    }
    Ok(selected)
}

/// Keeps the experiments named; a name that no file has is an error.
fn only(selected: &mut Vec<Selected>, names: &[String]) -> Result<(), Exit> {
    let known: Vec<&str> = selected.iter().map(|selected| selected.experiment.name.as_str()).collect();
    if let Some(missing) = names.iter().find(|name| !known.contains(&name.as_str())) {
        print::error(format!("no experiment `{missing}` here; there are: {}", known.join(", ")));
        return Err(Exit::Usage);
    }
    if !names.is_empty() {
        selected.retain(|selected| names.contains(&selected.experiment.name));
    }
    if selected.is_empty() {
        print::error("the files hold no experiment");
        return Err(Exit::Usage);
    }
    Ok(())
}

/// Two experiments of one name would write to one report folder.
fn unique(selected: &[Selected]) -> Result<(), Exit> {
    let mut seen: Vec<&Selected> = Vec::new();
    for selected in selected {
        let name = &selected.experiment.name;
        if let Some(other) = seen.iter().find(|other| other.experiment.name == *name) {
            print::error(format!(
                "`{name}` is in {} and in {}, and both would write to one report; rename one, or use --only and one file",
                other.path.display(),
                selected.path.display()
            ));
            return Err(Exit::Usage);
        }
        seen.push(selected);
    }
    Ok(())
}

/// The root, which must be a folder.
pub(super) fn root(path: &Path) -> Result<Root, Exit> {
    if path.is_dir() {
        return Ok(Root::new(path));
    }
    print::error(format!("--root {} is not a folder", path.display()));
    Err(Exit::Usage)
}

/// The programs an experiment requires that are on `PATH`.
pub(super) fn tools(experiment: &Experiment) -> BTreeSet<String> {
    bind::required_tools(experiment).filter(|tool| host::on_path(tool)).map(str::to_owned).collect()
}
