//! A row for each exchange, for those who ask for it: what it says agrees with what is counted.

use ebbtide_sim::record::Store;
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{load, parse_set};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::File;
use std::path::Path;

fn campaign(cc: &str) -> Campaign {
    let axes = ["clients=40", "exchanges=5", "buffer=600"].map(|axis| parse_set(axis).unwrap());
    let source = load("nb-iot").unwrap();
    let mut campaign =
        Campaign::plan(source, axes.to_vec(), vec![cc.to_owned()], Some(2), None).unwrap();
    campaign.exchanges = true;
    campaign
}

/// A row: client, exchange, asked, first sent, ended, transmissions, answered.
type Row = (i32, i32, i64, Option<i64>, i64, i32, Option<i32>);

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        (
            row.get_int(7).unwrap(),
            row.get_int(8).unwrap(),
            row.get_long(9).unwrap(),
            row.get_long(10).ok(),
            row.get_long(11).unwrap(),
            row.get_int(12).unwrap(),
            row.get_int(13).ok(),
        )
    });
    rows.collect()
}

#[test]
fn every_exchange_has_one_row_that_agrees_with_what_is_counted() {
    for cc in ["default", "fasor-token", "tcp"] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let campaign = campaign(cc);
        let results = campaign.run(Some(&store), None, &()).unwrap();
        let cell = &results.cells[0].1.cell;
        let mut all = Vec::new();
        for key in (0..2).map(campaign.keys(&campaign.cells[0])) {
            let mut own = rows(&folder.path().join(format!("exchanges/{key}.parquet")));
            own.sort_unstable();
            let names: Vec<(i32, i32)> = own.iter().map(|row| (row.0, row.1)).collect();
            let expected: Vec<(i32, i32)> =
                (0..40).flat_map(|client| (0..5).map(move |exchange| (client, exchange))).collect();
            assert_eq!(names, expected, "{cc}");
            all.extend(own);
        }
        let answered = all.iter().filter(|row| row.6.is_some()).count() as u64;
        let ended = ["completed", "failed"].map(|name| cell.number(name) as u64);
        assert_eq!([answered, all.len() as u64 - answered], ended, "{cc}");
        for (_, _, asked, first_sent, ended, transmissions, answered) in &all {
            assert!(asked <= ended, "{cc}");
            assert!(first_sent.is_none_or(|first| asked <= &first && &first <= ended), "{cc}");
            assert!(answered.is_none_or(|ordinal| ordinal < *transmissions), "{cc}");
        }
        let sum: i64 = all.iter().filter(|row| row.6.is_some()).map(|row| row.4 - row.2).sum();
        assert!(sum > 0, "{cc}");
        let most = all.iter().filter(|row| row.6.is_some()).map(|row| row.4 - row.2).max().unwrap();
        let most = most as f64 / 1e9;
        assert!((cell.spread("exchange_duration_s").max / most - 1.0).abs() < 0.01, "{cc}: {most}");
    }
}

#[test]
fn results_without_exchanges_get_them_when_they_are_asked_for_and_stay_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut campaign = campaign("default");
    campaign.exchanges = false;
    campaign.run(Some(&store), None, &()).unwrap();
    let files = |name: &str| {
        let entries = std::fs::read_dir(folder.path().join(name)).into_iter().flatten();
        let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    };
    assert!(files("exchanges").is_empty());
    let read =
        |name: &str| files(name).iter().map(|f| std::fs::read(f).unwrap()).collect::<Vec<_>>();
    let before = read("runs");
    campaign.exchanges = true;
    assert_eq!(campaign.run(Some(&store), None, &()).unwrap().reused, 0);
    assert_eq!(files("exchanges").len(), 2);
    assert_eq!(read("runs"), before, "watching changes nothing");
    assert_eq!(campaign.run(Some(&store), None, &()).unwrap().reused, 2);
    // One changed byte is noticed.
    let victim = &files("exchanges")[0];
    let mut bytes = std::fs::read(victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(victim, bytes).unwrap();
    let error = campaign.run(Some(&store), None, &()).unwrap_err().to_string();
    assert!(error.contains(victim.file_name().unwrap().to_str().unwrap()), "{error}");
}
