//! The printed figures of RCOAP21 beside the measured ones.

use super::super::measured_campaign::MeasuredCampaign;
use super::super::papers::Paper;
use super::cells::{
    DISCOVERING, OVERHEAD, RCOAP, RCOAP_16K, RCOAP_BESIDE_TCP, TCP_BY_THE_CLOCK, TCP_BY_THE_RATE,
    compared, flows,
};
use super::statements;
use ebbtide_sim::result::{Comparison, Results};
use ebbtide_sim::run::Campaign;

/// The figures that the paper prints and that this program can reproduce, beginning with their
/// source.
const FIGURES: &str = include_str!("../../published/rcoap21.csv");

/// Compares the printed figures with measured values.
pub(in super::super) fn compare(campaign: &Campaign, results: &Results) -> Vec<Comparison> {
    let measured = MeasuredCampaign { campaign, results };
    let lines = FIGURES.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.filter_map(|line| comparison(measured, line)).collect()
}

fn comparison(measured: MeasuredCampaign<'_>, line: &str) -> Option<Comparison> {
    let [table, quantity, place, cc, published] =
        <[&str; 5]>::try_from(line.split(',').collect::<Vec<_>>()).ok()?;
    let published: f64 = published.parse().ok()?;
    let control = if cc == "rcoap" { RCOAP } else { cc };
    let (value, half) = match (quantity, place.parse::<usize>().ok()) {
        ("packets delivered", Some(flow)) => {
            (compared(measured, control)?.flows.get(flow)?.delivered, f64::NAN)
        }
        ("mean delay (ms)", _) => {
            let (mean, half) = compared(measured, control)?.delay_s;
            (1e3 * mean, 1e3 * half)
        }
        ("packets delivered beside TCP", _) => {
            let (settings, control) = match cc {
                "rcoap" => (TCP_BY_THE_RATE, RCOAP_BESIDE_TCP),
                other => (TCP_BY_THE_CLOCK, other),
            };
            (flows(measured, settings, control)?.flows.first()?.delivered, f64::NAN)
        }
        ("discovery (% of the bytes)", _) => {
            (100.0 * statements::overhead(flows(measured, OVERHEAD, DISCOVERING)?), f64::NAN)
        }
        ("throughput over a fixed rate (%)", _) => {
            let rate = |cc| flows(measured, OVERHEAD, cc).map(|cell| cell.throughput_bps.0);
            (100.0 * (rate(DISCOVERING)? / rate(RCOAP_16K)? - 1.0), f64::NAN)
        }
        _ => return None,
    };
    let is_percentage = quantity.contains('%');
    let scale = if is_percentage { 100.0 } else { published };
    let most = statements::most_packets(control, place.parse().unwrap_or(0));
    let beyond = quantity == "packets delivered" && most.is_some_and(|most| published > most);
    Some(Comparison {
        source: Paper::Rcoap21.source().to_owned(),
        table: table.to_owned(),
        quantity: quantity.to_owned(),
        cell: match place.parse::<u32>() {
            Ok(flow) => format!("flow {}", flow + 1),
            Err(_) => place.to_owned(),
        },
        cc: cc.to_owned(),
        published,
        measured: value,
        ci: (value - half, value + half),
        relative: (value - published) / scale,
        is_percentage,
        // There is no tolerance, because the paper's own figures do not agree with each other.
        within: None,
        note: match most {
            Some(most) if beyond => {
                format!("more than the {most:.0} that its IPI_min lets leave in its time")
            }
            _ => String::new(),
        },
    })
}
