//! Reports to draw: made up, but of the shape and size of real ones.

#![expect(clippy::disallowed_methods, reason = "made-up curves, not results")]

use ebbtide_sim::judge::{ControlOutcome, Percentile, RunFigures};
use ebbtide_sim::result::{
    Cell, Comparison, Figures, PacketCounts, Packets, Report, Series, Summary, Value,
};

/// What a made-up control does to a cell of 400 clients whose limit is 501 s.
struct Shape {
    cc: &'static str,
    median: f64,
    spread: f64,
    unnecessary: f64,
    counts: &'static [u64],
}

const SHAPES: [Shape; 4] = [
    Shape {
        cc: "default",
        median: 2425.3,
        spread: 0.045,
        unnecessary: 190.0,
        counts: &[2000, 9000, 40_000, 120_000, 180_000, 45_000, 4000],
    },
    Shape {
        cc: "cocoa",
        median: 642.1,
        spread: 0.06,
        unnecessary: 14.0,
        counts: &[330_000, 41_000, 19_000, 8000, 2000],
    },
    Shape {
        cc: "fasor",
        median: 551.7,
        spread: 0.035,
        unnecessary: 5.0,
        counts: &[372_000, 9000, 8000, 8000, 3000],
    },
    Shape {
        cc: "fasor-token",
        median: 527.5,
        spread: 0.02,
        unnecessary: 2.6,
        counts: &[381_000, 12_000, 5000, 1500, 500],
    },
];

/// One setting, four controls, series for one replication of each.
pub(crate) fn nb_iot() -> Report {
    let cells = SHAPES.iter().map(one_setting).collect();
    let command = "ebbtide run nb-iot --set clients=400 --set buffer=infinite \
                   --cc default,cocoa,fasor,fasor-token --reps 20 --seed 1";
    Report {
        title: "NB-IoT cell, 400 devices, infinite buffer".to_owned(),
        subtitle: "Four congestion controls on one shared link".to_owned(),
        scenario: "nb-iot".to_owned(),
        description: "400 devices behind one narrow-band link (30 kbit/s down, 60 kbit/s up) \
                      exchange 50 requests and responses each with a server, back to back, all \
                      starting at once."
            .to_owned(),
        source: "ANRW18, Thesis19".to_owned(),
        command: command.to_owned(),
        percentile: Percentile::default(),
        is_periodic: false,
        curve: None,
        version: "0.1.0".to_owned(),
        seed: 1,
        scenario_toml: "name = \"nb-iot\"\n\n[link.down]\nrate = \"30 kbit/s\"  # <shared>\n"
            .to_owned(),
        axes: Vec::new(),
        cells,
        until: Vec::new(),
        published: Vec::new(),
        notes: vec!["Medians are over all clients of all replications.".to_owned()],
    }
}

fn one_setting(shape: &Shape) -> Cell {
    let settings =
        [("clients", "400"), ("buffer", "infinite")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    cell(shape, 400, 1.0, &settings)
}

/// Published figures beside measured ones, two of them outside their tolerance.
pub(crate) fn reproduction() -> Report {
    let mut report = nb_iot();
    let clients = [1, 10, 50, 100, 200, 400];
    for (index, shape) in SHAPES.iter().enumerate() {
        for (step, clients) in clients.iter().enumerate() {
            let published = shape.median * f64::from(*clients) / 400.0;
            let relative = match (index, step) {
                (1, 4) => 0.0135,
                (0, 3) => -0.009,
                _ => (index as f64 - 1.5) * 0.0009 + (step as f64 - 2.5) * 0.0011,
            };
            let measured = published * (1.0 + relative);
            report.published.push(Comparison {
                is_percentage: false,
                source: "Thesis19".to_owned(),
                table: "table 8.2".to_owned(),
                quantity: "median FCT (s)".to_owned(),
                cell: format!("{clients} clients, infinite buffer"),
                cc: shape.cc.to_owned(),
                published,
                measured,
                ci: (measured * 0.998, measured * 1.002),
                relative,
                within: Some(0.006),
                note: if relative > 0.01 { "See the trace of replication 3." } else { "" }
                    .to_owned(),
            });
        }
    }
    report
}

/// One setting, every built-in control and one of a user's own.
pub(crate) fn every_control() -> Report {
    let names = "default default-b default-fb1 default-fb2 linux-rto peak-hopper cocoa-01 \
                 cocoa-plus cocoa cocoa-fb1 cocoa-fb2 slow fast-slow fasor-k4 fasor fasor-token \
                 fasor-option tcp rcoap ebb my-own-very-long-name";
    let mut report = nb_iot();
    report.title = "NB-IoT cell, every control".to_owned();
    report.subtitle = "One shared link, 400 devices".to_owned();
    let shapes = report.cells.clone();
    report.cells.clear();
    for (index, name) in names.split_whitespace().enumerate() {
        let mut cell = shapes[index * shapes.len() / 21].clone();
        let stretch = 1.0 + 0.05 * (index % 5) as f64;
        let all = [&mut cell.fct.min, &mut cell.fct.p10, &mut cell.fct.p25, &mut cell.fct.median];
        all.into_iter().for_each(|value| *value *= stretch);
        let all = [&mut cell.fct.p75, &mut cell.fct.p90, &mut cell.fct.max];
        all.into_iter().for_each(|value| *value *= stretch);
        cell.fct_ci = (cell.fct_ci.0 * stretch, cell.fct_ci.1 * stretch);
        cell.delivered_quantiles.iter_mut().for_each(|value| *value *= stretch);
        cell.command = cell.command.replace(&cell.cc, name);
        cell.cc = name.to_owned();
        report.cells.push(cell);
    }
    report
}

/// A sweep over workload, clients and buffer: so many cells of four controls each.
pub(crate) fn sweep(workloads: usize, clients: usize, buffers: usize) -> Report {
    let mut report = nb_iot();
    report.title = "NB-IoT cell under every load and buffer".to_owned();
    report.axes = ["workload", "clients", "buffer"].map(str::to_owned).to_vec();
    report.cells.clear();
    for workload in ["continuous", "random", "mixed", "periodic"].iter().cycle().take(workloads) {
        for clients in [1u32, 10, 50, 100, 200, 400].iter().cycle().take(clients) {
            for buffer in ["2500", "14100", "28200", "infinite"].iter().cycle().take(buffers) {
                for shape in &SHAPES {
                    let settings = [
                        ("workload", (*workload).to_owned()),
                        ("clients", clients.to_string()),
                        ("buffer", (*buffer).to_owned()),
                    ];
                    let settings = settings.map(|(key, value)| (key.to_owned(), value));
                    let crowded = if *buffer == "infinite" { 1.0 } else { 0.35 };
                    report.cells.push(cell(shape, *clients, crowded, &settings));
                }
            }
        }
    }
    report.cells.iter_mut().skip(8).for_each(|cell| cell.series.clear());
    report
}

/// One control, one client, everything zero or missing.
pub(crate) fn degenerate() -> Report {
    let none = f64::NAN;
    let summary =
        Summary { min: none, p10: none, p25: none, median: none, p75: none, p90: none, max: none };
    let empty = Cell { cc: "fasor".to_owned(), clients: 1, reps: 1, ..Cell::default() };
    let broken = Cell {
        cc: "mine <b>&\"'".to_owned(),
        settings: vec![("a<b".to_owned(), "</script>".to_owned())],
        fct: summary,
        fct_ci: (none, f64::INFINITY),
        fct_limit_s: f64::INFINITY,
        delivered_quantiles: vec![none; 101],
        figures: Figures::from([
            ("unnecessary_retransmissions", Value::Spread(summary)),
            ("utilisation.up", Value::Number(none)),
            ("goodput_bps", Value::Number(f64::NEG_INFINITY)),
            ("jain", Value::Number(none)),
            ("failed", Value::Count(3)),
        ]),
        series: vec![Series {
            replication: 0,
            queue_down: vec![(none, 1.0), (0.0, f64::INFINITY)],
            timeouts: vec![(0.0, 0.0)],
            ..Series::default()
        }],
        ..Cell::default()
    };
    let published =
        vec![Comparison { relative: none, within: Some(0.01), ..Comparison::default() }];
    Report {
        title: "<script>alert('no')</script>".to_owned(),
        command: "ebbtide run a&b --set x=<y>".to_owned(),
        cells: vec![empty, broken],
        published,
        ..Report::default()
    }
}

fn cell(shape: &Shape, clients: u32, crowded: f64, settings: &[(String, String)]) -> Cell {
    let limit = (f64::from(clients) * 1.2533).max(33.0);
    let excess = 1.0 + (shape.median / 501.3 - 1.0) * crowded * f64::from(clients) / 400.0;
    let fct = |share: f64| {
        let tail = (share - 0.5) * 2.0;
        limit * excess * (1.0 + shape.spread * (tail + 0.9 * tail.powi(5)))
    };
    let load = crowded * f64::from(clients) / 400.0;
    let seven = |value: f64| Summary {
        min: (value * 0.2).floor(),
        p10: value * 0.55,
        p25: value * 0.8,
        median: value,
        p75: value * 1.25,
        p90: value * 1.6,
        max: (value * 2.4).ceil(),
    };
    let sent = u64::from(clients) * 50 * 20;
    let swept: String =
        settings.iter().map(|(key, value)| format!("--set {key}={value} ")).collect();
    Cell {
        cc: shape.cc.to_owned(),
        settings: settings.to_vec(),
        reps: 20,
        clients,
        fct: Summary {
            min: fct(0.0),
            p10: fct(0.1),
            p25: fct(0.25),
            median: fct(0.5),
            p75: fct(0.75),
            p90: fct(0.9),
            max: fct(1.0),
        },
        fct_ci: (fct(0.5) * 0.997, fct(0.5) * 1.003),
        fct_limit_s: limit,
        outcome: outcome(shape, &fct, load, sent),
        delivered_quantiles: (0..=100).map(|percent| fct(f64::from(percent) / 100.0)).collect(),
        duration_quantiles: (0..=100).map(|percent| f64::from(percent + 1) / 20.0).collect(),
        figures: Figures::from([
            ("unnecessary_retransmissions", Value::Spread(seven(shape.unnecessary * load))),
            ("duplicate_responses", Value::Spread(seven(shape.unnecessary * load * 0.9))),
            ("exchanges_by_retransmissions", Value::Counts(shape.counts.to_vec())),
            ("completed", Value::Count(sent)),
            ("failed", Value::Count(0)),
            ("utilisation.up", Value::Number(0.211)),
            ("utilisation.down", Value::Number(0.934)),
            ("goodput_bps", Value::Number(18_230.0 / excess)),
            ("jain", Value::Number(0.9987)),
            ("rtt_s", Value::Spread(seven(limit * excess / 50.0))),
            ("timeouts", Value::Spread(seven(shape.unnecessary * load * 1.1))),
            ("probes", Value::Spread(seven(0.0))),
            ("largest_timeout_s", Value::Spread(seven(31.0))),
        ]),
        packets: Packets {
            up: PacketCounts {
                sent: sent + 40_000,
                delivered: sent + 40_000,
                ..Default::default()
            },
            down: PacketCounts {
                sent: sent + 40_000,
                delivered: sent + 21_234,
                dropped_queue: 18_700,
                lost_link: 66,
                marked: 0,
            },
        },
        command: format!("ebbtide run nb-iot {swept}--cc {} --reps 20 --seed 1", shape.cc),
        series: vec![series(fct(1.0), shape)],
        ..Cell::default()
    }
}

/// What such a control would be judged by: everything is delivered, with so many copies.
fn outcome(shape: &Shape, fct: &dyn Fn(f64) -> f64, load: f64, sent: u64) -> ControlOutcome {
    let copies = shape.unnecessary * load / 50.0;
    let run = |factor: f64| RunFigures {
        delivered: 1.0,
        arrived: 1.0,
        unnecessary_share: copies / (1.0 + copies),
        transmissions_per_delivered: 1.0 + copies,
        bytes_per_delivered: 188.0 * (1.0 + copies),
        delivered_by_s: [0.5, 0.9, 0.99, 1.0].map(|share| Some(fct(share) * factor)),
        goodput_share: 0.9,
        occupied: 0.95,
        deadline_missed: None,
        fairness: 0.9987,
        power_mw: None,
    };
    ControlOutcome {
        asked: sent,
        all: run(1.0),
        runs: (0..20).map(|index| run(1.0 + 0.0002 * f64::from(index))).collect(),
        ..ControlOutcome::default()
    }
}

fn series(end: f64, shape: &Shape) -> Series {
    let mut state = 12_345u64;
    let mut noise = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let bulk = 37_000.0 * (shape.unnecessary / 20.0 + 1.0);
    let at = |index: u32, of: u32| end * f64::from(index) / f64::from(of);
    Series {
        replication: 0,
        flows: Vec::new(),
        queue_down: (0..600)
            .map(|i| {
                let rest = 1.0 - f64::from(i) / 600.0;
                (at(i, 600), bulk * rest.powf(0.3) * (0.8 + 0.2 * noise()))
            })
            .collect(),
        queue_up: (0..600).map(|i| (at(i, 600), 0.1 * bulk * noise())).collect(),
        timeouts: (0..2000)
            .map(|i| (at(i, 2000), 2.0 * (1.0 + noise()) * 2f64.powf((4.0 * noise()).floor())))
            .collect(),
        throughput: (0..200).map(|i| (at(i, 200), 16_000.0 + 2000.0 * noise())).collect(),
    }
}
