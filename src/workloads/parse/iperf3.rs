//! iperf3's JSON (`-J`). What arrived counts, not what was sent.
//!
//! Keys: `iperf_json_finish` and `iperf_print_results` in `iperf_api.c`.

use serde_json::Value;

use super::document::{document, field, optional};
use super::{Output, Parsed, quote};

/// Throughput at the receiver, both directions together with `--bidir`; retransmits of TCP; CPU of this side.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let root = document(output)?;
    if let Some(error) = root.get("error") {
        return Err(format!("iperf3 reports an error: {}", quote(error.as_str().unwrap_or(&error.to_string()))));
    }
    let end = root.get("end").ok_or("there is no `end` in iperf3's JSON")?;
    let mut parsed = Parsed::default();
    let mut received = arrived(end, &mut parsed)?;
    if let Some(back) = end.get("sum_received_bidir_reverse") {
        received += field(back, "bits_per_second")?;
        parsed.note("throughput", "both directions together");
    }
    parsed.take("throughput", Ok(received / 1e6));
    if let Some(mut retransmits) = end.get("sum_sent").map(|sum| optional(sum, "retransmits")).transpose()?.flatten() {
        let back = end.get("sum_sent_bidir_reverse").map(|sum| optional(sum, "retransmits")).transpose()?;
        retransmits += back.flatten().unwrap_or(0.0);
        parsed.take("retransmits", Ok(retransmits));
    } else {
        parsed.note("retransmits", "not counted: not TCP, or a system that does not tell");
    }
    let cpu = end.get("cpu_utilization_percent").ok_or_else(|| "there is no `cpu_utilization_percent`".to_owned());
    parsed.take("cpu_local", cpu.and_then(|cpu| field(cpu, "host_total")));
    Ok(parsed)
}

/// Bits per second that arrived. Up to 3.6 UDP has one `sum`, of what was sent and the share that was lost.
fn arrived(end: &Value, parsed: &mut Parsed) -> Result<f64, String> {
    let sum = end.get("sum_received").or_else(|| end.get("sum"));
    let sum = sum.ok_or("there is no `sum_received` and no `sum` in `end`")?;
    let lost = optional(sum, "lost_percent")?;
    if let Some(lost) = lost.filter(|lost| *lost > 0.0) {
        parsed.note("lost", format!("{lost:.2} % of the packets"));
    }
    let rate = field(sum, "bits_per_second")?;
    if end.get("sum_received").is_some() {
        return Ok(rate);
    }
    let lost = lost.filter(|lost| *lost <= 100.0).ok_or("`sum` does not say how much was lost (`lost_percent`)")?;
    Ok(rate * (1.0 - lost / 100.0))
}
