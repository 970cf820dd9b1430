//! The cells of RCOAP21, and where they are among the results.

use super::super::measured_campaign::MeasuredCampaign;
use super::super::papers::{CellSettings, Paper};
use ebbtide_sim::result::{CellResult, FlowCell};

/// Plain CoAP and CoCoA, which send at the rate that the application offers.
pub(super) const OTHERS: [&str; 3] = ["default", "cocoa", "cocoa-plus"];
/// RCOAP as in the comparison: it starts at one message every 500 ms and sends at most one every
/// 400 ms.
pub(super) const RCOAP: &str = "rcoap:start-interval=500ms:ipi-min=400ms";
/// With background traffic: at most one message every 200 ms.
pub(super) const RCOAP_BESIDE_TCP: &str = "rcoap:start-interval=500ms:ipi-min=200ms";
/// The paper's other start rate for the same flows: 16 kbit/s each, which is a message of 106
/// bytes every 53 ms.
pub(super) const RCOAP_16K: &str = "rcoap:start-interval=53ms:ipi-min=53ms";
/// Over the whole range of loads.
pub(super) const RCOAP_OF_ANY_LOAD: &str = "rcoap:start-interval=500ms:ipi-min=10ms";
/// R_start of 180 kbit/s, of which 160 kbit/s are allowed.
pub(super) const HIGH_START: &str = "rcoap:start-interval=4.711ms:ipi-min=5.3ms";
/// The same without a limit on the rate other than the result of discovery.
pub(super) const HIGH_START_FREE: &str = "rcoap:start-interval=4.711ms:ipi-min=0.1ms";
/// R_start of 16 kbit/s with the same limit.
pub(super) const LOW_START: &str = "rcoap:start-interval=53ms:ipi-min=5.3ms";
/// No settings: R_start comes from a pair of pings.
pub(super) const NO_START: &str = "rcoap:ipi-min=0.1ms";
/// A first message interval of 800 ms, which may fall to 400 ms.
pub(super) const LOSING: &str = "rcoap:start-interval=800ms:ipi-min=400ms";
/// The same with room for several steps upwards.
pub(super) const RISING: &str = "rcoap:start-interval=800ms:ipi-min=50ms";
/// On the bottleneck of 25 kbit/s: a start of 16 kbit/s and no limit below the bottleneck's rate;
/// and without any start rate.
pub(super) const DISCOVERING: &str = "rcoap:start-interval=53ms:ipi-min=33.92ms";
pub(super) const UNBOUNDED: &str = "rcoap:start-interval=53ms";

/// Every interval of the loss figure and of the IPI table.
pub(super) const INTERVALS: [&str; 11] = [
    "5 s", "3 s", "1 s", "500 ms", "300 ms", "200 ms", "100 ms", "50 ms", "30 ms", "20 ms", "10 ms",
];

/// The settings of an experiment.
pub(super) type Settings = &'static [(&'static str, &'static str)];

pub(super) const BY_THE_CLOCK: Settings = &[("interval", "500 ms")];
pub(super) const BY_THE_RATE: Settings = &[("interval", "0 s")];
pub(super) const ESTIMATION: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "500 ms")];
pub(super) const NARROW: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "500 ms"), ("rate", "160 kbit/s")];
pub(super) const ONE_LOST: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "250 ms"), ("drops", "[1 after 20 s]")];
pub(super) const TWO_LOST: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "250 ms"), ("drops", "[2 after 20 s]")];
pub(super) const FOUR_LOST: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("delay", "250 ms"), ("drops", "[4 after 20 s]")];
pub(super) const OVERHEAD: Settings =
    &[("interval", "0 s"), ("clients", "1"), ("rate", "25 kbit/s"), ("duration", "100 s")];
pub(super) const TCP_BY_THE_CLOCK: Settings = &[("interval", "500 ms"), ("background", "3")];
pub(super) const TCP_BY_THE_RATE: Settings = &[("interval", "0 s"), ("background", "3")];

/// All cells.
pub(in super::super) fn cells() -> Vec<CellSettings> {
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
pub(super) fn find<'r>(
    measured: MeasuredCampaign<'r>,
    settings: &[(&str, &str)],
    cc: &str,
) -> Option<&'r CellResult> {
    let own = || settings.iter().copied();
    measured.results.cells.iter().find_map(|(index, result)| {
        let spec = &measured.campaign.cells[*index];
        let is_it = spec.scenario.name == Paper::Rcoap21.scenario()
            && spec.cc == cc
            && spec.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).eq(own());
        is_it.then_some(result)
    })
}

pub(super) fn flows<'r>(
    measured: MeasuredCampaign<'r>,
    settings: Settings,
    cc: &str,
) -> Option<&'r FlowCell> {
    find(measured, settings, cc)?.cell.flows.as_ref()
}

/// The cell in which a control is compared with RCOAP.
pub(super) fn compared<'r>(measured: MeasuredCampaign<'r>, cc: &str) -> Option<&'r FlowCell> {
    let settings = if OTHERS.contains(&cc) { BY_THE_CLOCK } else { BY_THE_RATE };
    flows(measured, settings, cc)
}
