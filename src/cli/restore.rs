//! `irqlab restore`: puts the host back after a run that was killed.

use super::{Exit, print};
use crate::run::scratch;
use crate::settings::{self, Live, Restored};

pub(super) fn restore() -> Exit {
    scratch::sweep(&scratch::place());
    match settings::restore_unfinished(&Live::new(), &settings::state_dir()) {
        Ok(None) => {
            print::data("nothing to put back\n");
            Exit::Fine
        }
        Ok(Some(restored)) => outcome(&restored),
        Err(error) => {
            print::error(error);
            Exit::Run
        }
    }
}

/// Says what putting the host back gave.
pub(super) fn outcome(restored: &Restored) -> Exit {
    for remark in &restored.remarks {
        print::talk(&format!("note: {remark}"));
    }
    for failed in &restored.failed {
        print::error(format!("not put back: {failed}"));
    }
    let already = match restored.already {
        0 => String::new(),
        already => format!(", {already} were as they had been already"),
    };
    let noun = if restored.restored == 1 { "setting" } else { "settings" };
    print::talk(&format!("{} {noun} put back{already}", restored.restored));
    if restored.failed.is_empty() {
        return Exit::Fine;
    }
    print::error("the journal is kept; when the cause is gone, run `irqlab restore` again");
    Exit::Run
}
