//! RCOAP21: senders of many messages in a Wi-Fi cell behind a bottleneck.

mod pages;
mod rates;
mod statements;

use super::low_power::CellSettings;
use super::papers::Paper;
use crate::report::{Comparison, FlowCell};
use crate::run::{Campaign, CellResult, Results};

pub(super) use pages::pages;
pub(super) use statements::check as statements;

/// The measured results and the campaign that was run.
type Measured<'m> = (&'m Campaign, &'m Results);

/// The figures that the paper prints and that this program can reproduce, beginning with their
/// source.
const FIGURES: &str = include_str!("../../../published/rcoap21.csv");

/// Plain CoAP and CoCoA, which send at the rate that the application offers.
const OTHERS: [&str; 3] = ["default", "cocoa", "cocoa-plus"];
/// RCOAP as in the comparison: it starts at one message every 500 ms and sends at most one every
/// 400 ms.
const RCOAP: &str = "rcoap:start-interval=500ms:ipi-min=400ms";
/// With background traffic: at most one message every 200 ms.
const RCOAP_BESIDE_TCP: &str = "rcoap:start-interval=500ms:ipi-min=200ms";
/// The paper's other start rate for the same flows: 16 kbit/s each, which is a message of 106
/// bytes every 53 ms.
const RCOAP_16K: &str = "rcoap:start-interval=53ms:ipi-min=53ms";
/// Over the whole range of loads.
const RCOAP_OF_ANY_LOAD: &str = "rcoap:start-interval=500ms:ipi-min=10ms";
/// R_start of 180 kbit/s, of which 160 kbit/s are allowed.
const HIGH_START: &str = "rcoap:start-interval=4.711ms:ipi-min=5.3ms";
/// The same without a limit on the rate other than the result of discovery.
const HIGH_START_FREE: &str = "rcoap:start-interval=4.711ms:ipi-min=0.1ms";
/// R_start of 16 kbit/s with the same limit.
const LOW_START: &str = "rcoap:start-interval=53ms:ipi-min=5.3ms";
/// No settings: R_start comes from a pair of pings.
const NO_START: &str = "rcoap:ipi-min=0.1ms";
/// A first message interval of 800 ms, which may fall to 400 ms.
const LOSING: &str = "rcoap:start-interval=800ms:ipi-min=400ms";
/// The same with room for several steps upwards.
const RISING: &str = "rcoap:start-interval=800ms:ipi-min=50ms";
/// On the bottleneck of 25 kbit/s: a start of 16 kbit/s and no limit below the bottleneck's rate;
/// and without any start rate.
const DISCOVERING: &str = "rcoap:start-interval=53ms:ipi-min=33.92ms";
const UNBOUNDED: &str = "rcoap:start-interval=53ms";

/// Every interval of the loss figure and of the IPI table.
pub(super) const INTERVALS: [&str; 11] = [
    "5 s", "3 s", "1 s", "500 ms", "300 ms", "200 ms", "100 ms", "50 ms", "30 ms", "20 ms", "10 ms",
];

/// The settings of an experiment.
type Settings = &'static [(&'static str, &'static str)];

const BY_THE_CLOCK: Settings = &[("interval", "500 ms")];
const BY_THE_RATE: Settings = &[("interval", "0 s")];
const ESTIMATION: Settings = &[("interval", "0 s"), ("clients", "1"), ("delay", "500 ms")];
const NARROW: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "500 ms"), ("rate", "160 kbit/s")];
const ONE_LOST: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "250 ms"), ("drops", "[1 after 20 s]")];
const TWO_LOST: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "250 ms"), ("drops", "[2 after 20 s]")];
const FOUR_LOST: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "250 ms"), ("drops", "[4 after 20 s]")];
const OVERHEAD: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("rate", "25 kbit/s"), ("duration", "100 s")];
const TCP_BY_THE_CLOCK: Settings = &[("interval", "500 ms"), ("background", "3")];
const TCP_BY_THE_RATE: Settings = &[("interval", "0 s"), ("background", "3")];

/// All cells.
pub(super) fn cells() -> Vec<CellSettings> {
    let experiments: &[(Settings, &[&str])] = &[
        (BY_THE_CLOCK, &OTHERS),
        (BY_THE_RATE, &[RCOAP, RCOAP_16K]),
        (TCP_BY_THE_CLOCK, &OTHERS),
        (TCP_BY_THE_RATE, &[RCOAP_BESIDE_TCP]),
        (ESTIMATION, &[HIGH_START, LOW_START]),
        (NARROW, &[HIGH_START_FREE, NO_START]),
        (ONE_LOST, &[LOSING, RISING]),
        (TWO_LOST, &[LOSING, RISING]),
        (FOUR_LOST, &[LOSING, RISING]),
        (OVERHEAD, &[DISCOVERING, UNBOUNDED, RCOAP_16K]),
    ];
    let mut all: Vec<CellSettings> = Vec::new();
    let mut add = |settings: &[(&str, &str)], cc: &str| {
        let settings: Vec<(String, String)> =
            settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        if !all.iter().any(|(own, name)| *own == settings && name == cc) {
            all.push((settings, cc.into()));
        }
    };
    for (settings, controls) in experiments {
        controls.iter().for_each(|cc| add(settings, cc));
    }
    for interval in INTERVALS {
        OTHERS.iter().chain(&[RCOAP_OF_ANY_LOAD]).for_each(|cc| add(&[("interval", interval)], cc));
    }
    all
}

/// The measured cell with exactly these settings under a control.
fn find<'r>(
    (campaign, results): Measured<'r>,
    settings: &[(&str, &str)],
    cc: &str,
) -> Option<&'r CellResult> {
    let own = || settings.iter().copied();
    results.cells.iter().find_map(|(index, result)| {
        let spec = &campaign.cells[*index];
        let is_it = spec.scenario.name == Paper::Rcoap21.scenario()
            && spec.cc == cc
            && spec.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).eq(own());
        is_it.then_some(result)
    })
}

fn flows<'r>(measured: Measured<'r>, settings: Settings, cc: &str) -> Option<&'r FlowCell> {
    find(measured, settings, cc)?.cell.flows.as_ref()
}

/// The cell in which a control is compared with RCOAP.
fn compared<'r>(measured: Measured<'r>, cc: &str) -> Option<&'r FlowCell> {
    let settings = if OTHERS.contains(&cc) { BY_THE_CLOCK } else { BY_THE_RATE };
    flows(measured, settings, cc)
}

/// Compares the printed figures with measured values.
pub(super) fn compare(campaign: &Campaign, results: &Results) -> Vec<Comparison> {
    let measured = (campaign, results);
    let lines = FIGURES.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.filter_map(|line| comparison(measured, line)).collect()
}

fn comparison(measured: Measured<'_>, line: &str) -> Option<Comparison> {
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
