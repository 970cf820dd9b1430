//! Replications over time: the steps agree with a closed form and with what the whole run counts, and keeping them
//! changes no result.

use ebbtide_sim::record::Store;
use ebbtide_sim::run::{Campaign, TimeGrid};
use ebbtide_sim::scenario::{Source, load, parse_set};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::File;
use std::path::Path;

/// A row: client (none: all), time in ns, queue towards the server, then sent, timeouts, delivered, failed,
/// unnecessary, in flight.
type Row = (Option<i32>, i64, Option<i64>, [i32; 6]);

fn rows(folder: &Path, key: &str) -> Vec<Row> {
    let file = File::open(folder.join(format!("series/{key}.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let counts = [11, 12, 13, 14, 15, 16].map(|column| row.get_int(column).unwrap());
        (row.get_int(7).ok(), row.get_long(8).unwrap(), row.get_long(9).ok(), counts)
    });
    rows.collect()
}

fn kept(mut campaign: Campaign, grid: TimeGrid) -> (tempfile::TempDir, Campaign) {
    campaign.over_time = Some(grid);
    let folder = tempfile::tempdir().unwrap();
    campaign.run(Some(&Store::open(folder.path()).unwrap()), None, &()).unwrap();
    (folder, campaign)
}

#[test]
fn a_queue_that_drains_has_a_value_in_every_step_and_nobody_is_in_flight_at_its_end() {
    // Ten requests of 100 bytes at once on a link of 8 kbit/s: the n-th one leaves after 0.1 s times n.
    let source = Source::new(
        "x.toml",
        "name = \"x\"\ntitle = \"x\"\n\
         [network.up]\nrate = \"8 kbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
         [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
         [clients]\ncount = 10\n[coap]\nack_timeout = \"600 s\"\n\
         [workload]\nkind = \"continuous\"\nexchanges = 1\nrequest_payload = 61\nresponse_payload = 0\n",
    );
    let campaign =
        Campaign::plan(source, Vec::new(), vec!["default".to_owned()], Some(1), None).unwrap();
    let grid = TimeGrid { step_ns: 100_000_000, clients: vec![3] };
    let (folder, campaign) = kept(campaign, grid);
    let rows = rows(folder.path(), &campaign.keys(&campaign.cells[0])(0));
    let all: Vec<&Row> = rows.iter().filter(|row| row.0.is_none()).collect();
    assert_eq!(all.len(), 11);
    for (step, row) in (0..).zip(&all) {
        assert_eq!(row.1, i64::from(step) * 100_000_000);
        // At the end of step 0 the second packet begins to leave, and eight wait.
        assert_eq!(row.2, Some(i64::from((8 - step).max(0) * 100)), "queue in step {step}");
        let sent = if step == 0 { 10 } else { 0 };
        assert_eq!(row.3, [sent, 0, i32::from(step > 0), 0, 0, 10 - step], "step {step}");
    }
    // The fourth client waits for three others.
    let own: Vec<&Row> = rows.iter().filter(|row| row.0 == Some(3)).collect();
    assert_eq!(own.len(), 11);
    assert!(own.iter().all(|row| row.2.is_none()));
    let delivered: Vec<usize> = (0..11).filter(|step| own[*step].3[2] == 1).collect();
    assert_eq!(delivered, [4]);
}

#[test]
fn the_steps_add_up_to_the_counts_of_the_run_and_change_none_of_them() {
    let axes = ["clients=40", "exchanges=5", "buffer=600"].map(|axis| parse_set(axis).unwrap());
    for cc in ["default", "ebb"] {
        let plan = || {
            let source = load("nb-iot").unwrap();
            Campaign::plan(source, axes.to_vec(), vec![cc.to_owned()], Some(2), None).unwrap()
        };
        let plain = plan().run(None, None, &()).unwrap();
        let (folder, campaign) =
            kept(plan(), TimeGrid { step_ns: 1_000_000_000, clients: Vec::new() });
        let again = campaign.run(Some(&Store::open(folder.path()).unwrap()), None, &()).unwrap();
        assert_eq!(again.reused, 2);
        let (cell, with) = (&plain.cells[0].1.cell, &again.cells[0].1.cell);
        assert_eq!((&cell.figures, &cell.outcome), (&with.figures, &with.outcome));
        let course = with.course.as_ref().unwrap();
        assert_eq!(course.reps, 2);
        let keys = campaign.keys(&campaign.cells[0]);
        let all: Vec<Row> = (0..2).flat_map(|rep| rows(folder.path(), &keys(rep))).collect();
        let sum = |place: usize| all.iter().map(|row| i64::from(row.3[place])).sum::<i64>();
        assert_eq!(sum(2), cell.number("completed") as i64);
        assert_eq!(sum(3), cell.number("failed") as i64);
        assert!(sum(1) > 0 && sum(0) >= sum(1) + sum(2), "{cc}");
        // The grid has no gaps.
        for rep in 0..2 {
            let own = rows(folder.path(), &keys(rep));
            let times = own.iter().map(|row| row.1);
            assert!(times.eq((0..own.len() as i64).map(|step| step * 1_000_000_000)), "{cc}");
        }
    }
}

#[test]
fn a_series_finer_than_its_room_has_longer_steps() {
    // An hour and a half in milliseconds would be more than 2^17 steps.
    let axes = ["clients=1", "exchanges=20"].map(|axis| parse_set(axis).unwrap());
    let cc = vec!["default".to_owned()];
    let campaign = Campaign::plan(load("edrx").unwrap(), axes.to_vec(), cc, Some(1), None).unwrap();
    let (folder, campaign) = kept(campaign, TimeGrid { step_ns: 1_000_000, clients: Vec::new() });
    let rows = rows(folder.path(), &campaign.keys(&campaign.cells[0])(0));
    assert!(rows.len() <= 1 << 17, "{}", rows.len());
    let step = rows[1].1;
    assert!(step > 1_000_000 && (step / 1_000_000).count_ones() == 1, "{step}");
    assert_eq!(rows.iter().map(|row| row.3[2]).sum::<i32>(), 20);
}
