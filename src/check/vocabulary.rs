//! Every word the checker knows, for the reference and its test.

pub use super::clauses::CLAUSES;
pub use super::experiment::LAYOUTS;
pub use super::labs::{LAB_OPTIONS, LabOptionForm};
pub use super::metrics::{DIRECTIONS, HOST_METRICS, KnownMetric, PROCESS_METRICS};
pub use super::parsers::{KnownParser, PARSERS, PATTERN_PARSERS};
pub use super::processes::PROCESS_OPTIONS;
pub use super::protocol::{
    DEFAULT_MAX, DEFAULT_PILOT, DEFAULT_REPEAT, DEFAULT_SEED, DEFAULT_SETTLE_MS, DEFAULT_TIMEOUT_MS, DEFAULT_WARMUP,
    FACTS, ORDERS, RETRIES,
};
pub use super::recorded::COLUMNS;
pub use super::recorded_file::{FILE_COLUMNS, HYPERFINE_METRIC};
pub use super::selectors::{CPU_SETS, DEFAULT_RANDOM_SEED, IRQ_CLASSES, TARGETS, TOPOLOGY_UNITS};
pub use super::settings::{SETTING_OPTIONS, SETTINGS, SettingForm};
pub use super::treatments::MOST_TREATMENTS;
pub use super::units::{Quantity, UNITS, Unit};
pub use super::workloads::{BUILTINS, Builtin, Domain, IPC_KINDS, Parameter, Remote};
