//! What figures are drawn from, as CSV (RFC 4180): one row per cell and replication.

use crate::judge::SHARES;
use crate::report::model::Report;

/// A row per cell and replication: the settings, the control, and the figures that lines, tables and
/// the verdict are made from. What does not exist, such as the time of what never came, is empty.
#[must_use]
pub fn csv(report: &Report) -> String {
    let mut head: Vec<String> = report.axes.clone();
    head.extend(
        ["cc", "replication", "delivered", "arrived", "unnecessary_share"].map(str::to_owned),
    );
    head.extend(["transmissions_per_delivered", "bytes_per_delivered"].map(str::to_owned));
    head.extend(SHARES.map(|share| format!("delivered_by_{share}_s")));
    head.extend(["goodput_share", "deadline_missed", "fairness"].map(str::to_owned));
    let mut out = line(head);
    for cell in &report.cells {
        for (replication, run) in cell.outcome.runs.iter().enumerate() {
            let mut row: Vec<String> =
                report.axes.iter().map(|key| cell.setting(key).to_owned()).collect();
            row.push(cell.cc.clone());
            row.push(replication.to_string());
            let mut numbers = vec![
                run.delivered,
                run.arrived,
                run.unnecessary_share,
                run.transmissions_per_delivered,
                run.bytes_per_delivered,
            ];
            numbers.extend(run.delivered_by_s.map(|time| time.unwrap_or(f64::NAN)));
            numbers.push(run.goodput_share);
            numbers.push(run.deadline_missed.unwrap_or(f64::NAN));
            numbers.push(run.fairness);
            let text =
                |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
            row.extend(numbers.into_iter().map(text));
            out.push_str(&line(row));
        }
    }
    out
}

fn line(fields: Vec<String>) -> String {
    let quoted = fields.into_iter().map(|field| {
        let is_plain = !field.contains([',', '"', '\n', '\r']);
        if is_plain { field } else { format!("\"{}\"", field.replace('"', "\"\"")) }
    });
    format!("{}\r\n", quoted.collect::<Vec<_>>().join(","))
}
