//! The contract of the command line: documents, tables, exit codes.

use crate::common::{changed, command, ebbtide, succeed};
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;

const CLI: &str = include_str!("../../../../docs/cli.md");
const SMALL: [&str; 10] =
    ["run", "nb-iot", "--set", "clients=3,6", "--set", "exchanges=4", "--reps", "2", "--seed", "9"];

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(arguments)).unwrap()
}

/// The document without what the machine's clock says.
fn answer(arguments: &[&str]) -> Value {
    let mut document = json(arguments);
    for cell in document["cells"].as_array_mut().unwrap() {
        assert!(cell.as_object_mut().unwrap().remove("wall_s").unwrap().is_number());
    }
    document
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(more).copied().collect()
}

#[test]
fn the_json_document_has_the_keys_of_the_contract() {
    let document = json(&with(&["--cc", "default,fasor", "--json"]));
    assert_eq!(document["scenario"], "nb-iot");
    assert_eq!(document["seed"], 9);
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
    let cells = document["cells"].as_array().unwrap();
    let order: Vec<(u64, &str)> = cells
        .iter()
        .map(|cell| (cell["clients"].as_u64().unwrap(), cell["cc"].as_str().unwrap()))
        .collect();
    assert_eq!(order, [(3, "default"), (3, "fasor"), (6, "default"), (6, "fasor")]);
    for cell in cells {
        assert_eq!(cell["reps"], 2);
        for key in ["fct_s", "unnecessary_retransmissions"] {
            let numbers: Vec<f64> = ["min", "p10", "p25", "median", "p75", "p90", "max"]
                .iter()
                .map(|name| cell[key][name].as_f64().unwrap())
                .collect();
            assert!(numbers.is_sorted(), "{key}: {numbers:?}");
        }
        assert!(cell["fct_limit_s"].as_f64().unwrap() > 0.0);
        assert!(
            cell["fct_s"]["min"].as_f64() >= Some(0.99 * cell["fct_limit_s"].as_f64().unwrap())
        );
        let exchanges = 2 * 4 * cell["clients"].as_u64().unwrap();
        assert_eq!(cell["completed"], exchanges);
        assert_eq!(cell["failed"], 0);
        let counts = cell["exchanges_by_retransmissions"].as_array().unwrap();
        assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), exchanges);
        for side in ["up", "down"] {
            let count = |key: &str| cell["packets"][side][key].as_u64().unwrap();
            let arrived = count("delivered") + count("dropped_queue") + count("lost_link");
            assert_eq!(count("sent"), arrived);
            assert!(count("sent") >= exchanges);
        }
        assert!(cell["events"].as_u64().unwrap() > 0);
        assert!(cell["wall_s"].as_f64().unwrap() > 0.0 && cell["sim_s"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn the_same_seed_prints_the_same_document_whatever_the_number_of_threads() {
    let one = answer(&with(&["--json", "--jobs", "1", "--cc", "all"]));
    assert_eq!(one, answer(&with(&["--json", "--jobs", "3", "--cc", "all"])));
    let mut other = SMALL;
    other[9] = "10";
    let other: Vec<&str> = other.iter().chain(&["--json", "--cc", "all"]).copied().collect();
    assert_ne!(one["cells"], answer(&other)["cells"]);
}

#[test]
fn shards_and_a_resumed_campaign_print_the_document_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    let whole = answer(&with(&["--json"]));
    let first = json(&with(&["--json", "--out", out, "--shard", "1/3"]));
    assert!(first["cells"].as_array().unwrap().len() < whole["cells"].as_array().unwrap().len());
    succeed(&with(&["--out", out, "--shard", "2/3"]));
    assert_eq!(answer(&with(&["--json", "--out", out, "--shard", "3/3"])), whole);
    // Some are lost: only they are run again.
    let mut runs: Vec<_> =
        std::fs::read_dir(format!("{out}/runs")).unwrap().map(|e| e.unwrap().path()).collect();
    runs.sort();
    for path in runs.iter().step_by(3) {
        std::fs::remove_file(path).unwrap();
    }
    let text = succeed(&with(&["--out", out]));
    let kept = runs.len() - runs.iter().step_by(3).count();
    let sentence = format!("{kept} of {} replications were there already.", runs.len());
    assert!(text.contains(&sentence), "{text}");
    assert_eq!(answer(&with(&["--json", "--out", out])), whole);
}

#[test]
fn shards_that_run_at_once_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    let shards: Vec<_> = ["1/4", "2/4", "3/4", "4/4"]
        .iter()
        .map(|shard| {
            let arguments = with(&["--jobs", "1", "--out", out, "--shard", shard]);
            command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for shard in shards {
        let output = shard.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = succeed(&with(&["--out", out]));
    assert!(text.contains("\n16 of 16 replications were there already."), "{text}");
}

#[test]
fn a_control_that_misses_a_replication_is_named_where_it_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("some results");
    let out = out.to_str().unwrap();
    let arguments = |cc: &'static str| {
        vec![
            "run",
            "nb-iot",
            "--set",
            "clients=3",
            "--set",
            "exchanges=4",
            "--reps",
            "2",
            "--cc",
            cc,
        ]
    };
    let run = |cc: &'static str, more: &[&str]| {
        let arguments: Vec<&str> = arguments(cc).into_iter().chain(more.iter().copied()).collect();
        succeed(&arguments)
    };
    let text = run("default", &["--out", out, "--shard", "1/2"]);
    assert!(text.contains("No cell is complete: 1 of 2 replications are there."), "{text}");
    let report = ebbtide(&["report", out]);
    assert_eq!(report.code, Some(1), "{}", report.err);
    let advice = format!("--cc default --reps 2 --seed 1 --out '{out}'");
    assert!(report.err.contains(&advice), "{}", report.err);

    run("fasor", &["--out", out]);
    let left_out = "Left out: default (1 of 2 replications).";
    let text = run("default,fasor", &["--out", out, "--shard", "2/4"]);
    assert!(!text.contains("Left out"), "the other half of default is that shard's: {text}");
    let runs = std::fs::read_dir(format!("{out}/runs")).unwrap();
    let manifest = std::fs::read_to_string(format!("{out}/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let first = manifest["cells"][0]["runs"][0].as_str().unwrap();
    assert_eq!(runs.count(), 4);
    std::fs::remove_file(format!("{out}/{first}")).unwrap();
    let report = ebbtide(&["report", out]);
    assert_eq!(report.code, Some(0), "{}", report.err);
    assert!(report.err.contains(left_out), "{}", report.err);
    let page = std::fs::read_to_string(format!("{out}/report.html")).unwrap();
    assert!(page.contains(left_out), "the page says so, too");
    let text = run("default,fasor", &["--out", out, "--shard", "4/4"]);
    assert!(text.contains(left_out), "{text}");
}

#[test]
fn the_table_fits_in_80_columns() {
    let text = succeed(&with(&["--cc", "all"]));
    for control in ["default-fb1", "peak-hopper", "fasor-token"] {
        assert!(text.contains(control), "{control}: {text}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    assert!(text.contains("6 clients, 2 replications, seed 9"), "{text}");
}

#[test]
fn frames_and_background_flows_have_tables_of_their_own() {
    let settings =
        ["workload=periodic", "period=500 ms", "exchanges=20", "background=2", "wifi_loss=0.1"];
    let mut arguments = vec!["run", "rcoap-wifi", "--cc", "default,cocoa", "--reps", "2"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let text = succeed(&arguments);
    let (_, own) = text.split_once("\nWi-Fi cell").unwrap();
    assert!(own.contains("\nTCP background"), "{text}");
    assert!(own.lines().all(|line| line.chars().count() <= 80), "{text}");
    arguments.push("--json");
    let cell = &json(&arguments)["cells"][0];
    let frames = |key: &str| cell["wifi"][key].as_u64().unwrap();
    assert_eq!(frames("packets"), 2 * 3 * 20 * 2, "requests and responses");
    assert!(frames("faded") > 0 && frames("transmitted") > frames("packets"));
    let tcp = |key: &str| cell["background"][key].as_f64().unwrap();
    assert!(tcp("delivered_bps") <= tcp("offered_bps") && tcp("flows") == 2.0, "{cell}");
}

#[test]
fn a_copied_and_changed_scenario_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = changed(folder.path(), "rate = \"30 kbit/s\"", "rate = \"3 Mbit/s\"");
    let run = |scenario: &str| {
        let document = json(&[
            "run",
            scenario,
            "--set",
            "clients=50",
            "--cc",
            "default",
            "--reps",
            "1",
            "--json",
        ]);
        (document["scenario"].clone(), document["cells"][0]["fct_s"]["median"].as_f64().unwrap())
    };
    let (name, faster) = run(&path);
    assert_eq!(name, path);
    assert!(faster < 0.7 * run("nb-iot").1, "a faster link is faster");
}

#[test]
fn a_mixed_run_tells_its_halves_apart() {
    let document = json(&with(&["--set", "workload=mixed", "--cc", "default+fasor", "--json"]));
    let halves = document["cells"][0]["halves"].as_array().unwrap();
    let names: Vec<&str> = halves.iter().map(|half| half["cc"].as_str().unwrap()).collect();
    assert_eq!(names, ["default beside fasor", "fasor beside default"]);
    assert!(halves.iter().all(|half| half["fct_s"]["median"].is_number()));
}

#[test]
fn results_in_a_folder_can_be_reported_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let text = succeed(&with(&["--out", out.to_str().unwrap()]));
    let page = out.join("report.html");
    assert!(text.contains(page.to_str().unwrap()), "{text}");
    let first = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    let printed = succeed(&["report", out.to_str().unwrap()]);
    assert_eq!(printed.trim(), page.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(&page).unwrap(), first, "the report that the run wrote");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["seed"], 9);
}

#[test]
fn work_that_fails_has_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let answer = ebbtide(&with(&["--out", file.to_str().unwrap()]));
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    assert!(answer.err.contains("file"), "{}", answer.err);
    // A folder whose runs are gone.
    let out = folder.path().join("results");
    succeed(&with(&["--out", out.to_str().unwrap()]));
    std::fs::remove_dir_all(out.join("runs")).unwrap();
    let answer = ebbtide(&["report", out.to_str().unwrap()]);
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    assert!(answer.err.contains("ebbtide run nb-iot"), "how to go on: {}", answer.err);
}

#[test]
fn a_cell_over_tcp_stands_beside_the_others_and_says_what_it_is() {
    let document = json(&with(&["--cc", "tcp,fasor-token", "--json"]));
    let cells = document["cells"].as_array().unwrap();
    let names: Vec<&str> = cells.iter().map(|cell| cell["cc"].as_str().unwrap()).collect();
    assert_eq!(names, ["tcp", "fasor-token", "tcp", "fasor-token"]);
    for cell in cells {
        let is_tcp = cell["cc"] == "tcp";
        assert_eq!(cell["notes"].is_array(), is_tcp);
        assert_eq!(cell["failed"], 0);
        // A request of 48 and a response of 105 bytes in place of 39 and 95.
        assert!(cell["fct_s"]["min"].as_f64() >= cell["fct_limit_s"].as_f64().map(|s| 0.99 * s));
    }
    let table = succeed(&with(&["--cc", "tcp"]));
    assert!(table.contains("it is not") && table.contains("smoltcp"), "{table}");
    assert!(!succeed(&with(&["--cc", "fasor-token"])).contains("smoltcp"));
}

#[test]
fn lists_name_what_can_be_run() {
    let text = succeed(&["list"]);
    for name in ["nb-iot", "default", "cocoa", "fasor-token", "tcp", "q-block", "30 kbit/s"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let document = json(&["list", "--json"]);
    for key in ["scenarios", "congestion_controls", "transports", "transfers", "links"] {
        assert!(!document[key].as_array().unwrap().is_empty(), "{key}");
    }
    let one = json(&["list", "congestion-controls", "--json"]);
    assert_eq!(one.as_object().unwrap().len(), 3);
    let named = |key: &str| one[key].as_array().unwrap().clone();
    let run = |control: &serde_json::Value, workload: &[&str]| {
        let name = control["name"].as_str().unwrap();
        let fixed = ["run", "nb-iot", "--set", "clients=1", "--reps", "1", "--cc", name];
        succeed(&[&fixed[..], workload].concat());
    };
    for control in named("congestion_controls").iter().chain(&named("transports")) {
        run(control, &["--set", "exchanges=1"]);
    }
    for transfer in named("transfers") {
        let short = ["workload=transfer", "workload.request_payload=60"];
        run(&transfer, &["--set", short[0], "--set", short[1]]);
    }
}

#[test]
fn every_command_explains_itself() {
    let help = succeed(&["--help"]);
    assert!(
        help.contains("Exit codes: 0 success, 1 the work itself failed, 2 an argument was wrong")
    );
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    for expected in ["list", "run", "report", "completions", "man"] {
        assert!(commands.contains(&expected), "{commands:?}");
    }
    for name in commands {
        let text = succeed(&[name, "--help"]);
        assert!(text.contains("Usage:") && text.contains(name), "{name}: {text}");
    }
    assert!(succeed(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_that_leaves_early_is_not_an_error() {
    for arguments in [&["list"][..], &["list", "--json"], &with(&["--json"]), &with(&[])] {
        let mut child =
            command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_measurement_whose_reader_has_left_ends_quietly() {
    let server = crate::common::Serving::start(&[]);
    let uri = server.uri("/test");
    for format in [&[][..], &["--json"]] {
        let mut arguments = vec!["bench", uri.as_str(), "--requests", "100"];
        arguments.extend(format);
        let mut child =
            command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn completions_and_man_pages_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(&["completions", shell]);
        assert!(script.contains("ebbtide") && script.contains("report"), "{shell}");
    }
    let page = succeed(&["man"]);
    assert!(page.contains(".TH") && page.contains("ebbtide"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    succeed(&["man", folder.path().to_str().unwrap()]);
    for page in ["ebbtide.1", "ebbtide-run.1", "ebbtide-report.1", "ebbtide-list.1"] {
        assert!(folder.path().join(page).is_file(), "{page}");
    }
}

#[test]
fn few_replications_of_a_papers_experiments_are_not_judged() {
    // As many cells as the paper has would take long: the words are checked where they are made.
    use ebbtide_reproduce::{REPS_TO_JUDGE, withhold};
    use ebbtide_sim::result::Comparison;
    let row = Comparison {
        within: Some(0.006),
        note: "the interval includes the published value".to_owned(),
        ci: (-40.56, 301.2),
        relative: 0.5,
        ..Comparison::default()
    };
    let mut few = [row.clone()];
    withhold(&mut few, REPS_TO_JUDGE - 1);
    assert!(!few[0].is_outside() && few[0].ci.0.is_nan(), "{few:?}");
    assert!(few[0].note.contains("needs 10 replications"), "{few:?}");
    let mut enough = [row.clone()];
    withhold(&mut enough, REPS_TO_JUDGE);
    assert_eq!(enough[0], row);
}

#[test]
fn each_setting_has_a_verdict_and_each_cell_its_judgement() {
    let document = json(&with(&["--cc", "default,fasor", "--json"]));
    let settings = document["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 2);
    for (setting, clients) in settings.iter().zip([3, 6]) {
        assert_eq!(setting["settings"]["clients"], clients);
        let verdict = &setting["verdict"];
        assert!(verdict["sentence"].as_str().unwrap().contains("Use "), "{verdict}");
        assert!(["default", "fasor"].contains(&verdict["choose"].as_str().unwrap()));
        assert_eq!(verdict["percentile"], 99);
    }
    for cell in document["cells"].as_array().unwrap() {
        for key in ["delivered", "arrived"] {
            assert_eq!(cell[key], 1.0, "{key}");
        }
        for key in ["unnecessary_share", "transmissions_per_delivered", "bytes_per_delivered"] {
            assert!(cell[key].is_number(), "{key}: {cell}");
        }
        let share = cell["goodput_share"].as_f64().unwrap();
        assert!(share > 0.0 && share <= 1.0);
        assert!(cell["deadline_missed"].is_null(), "the scenario has no deadline");
        let by: Vec<f64> = ["50", "90", "99", "100"]
            .iter()
            .map(|share| cell["delivered_by_s"][share].as_f64().unwrap())
            .collect();
        assert!(by.is_sorted(), "{by:?}");
        let judgement = cell["judgement"].as_str().unwrap();
        assert!(["best", "level", "slower"].contains(&judgement), "{judgement}");
    }
}

#[test]
fn the_mark_of_the_table_the_document_and_the_report_are_one_judgement() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let scenario = ["run", "power-cut", "--set", "clients=300", "--set", "rate=4 kbit/s"];
    let rest = ["--set", "buffer=infinite", "--cc", "default,fasor-token", "--reps", "2"];
    let call = [&scenario[..], &rest].concat();
    let document = json(&[&call[..], &["--json"]].concat());
    let table = succeed(&[&call[..], &["--out", out.to_str().unwrap()]].concat());
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    let sentence = document["settings"][0]["verdict"]["sentence"].as_str().unwrap();
    let words =
        |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert!(words(&table).contains(&words(sentence)), "{table}\n{sentence}");
    let first = sentence.split(". ").next().unwrap();
    assert!(page.contains(first), "{first}");
    for cell in document["cells"].as_array().unwrap() {
        let (cc, judgement) = (cell["cc"].as_str().unwrap(), cell["judgement"].as_str().unwrap());
        let row = table.lines().find(|line| line.starts_with(&format!("{cc} "))).unwrap();
        assert!(row.contains(judgement), "{row}: {judgement}");
    }
    // The command on the page makes the page.
    assert!(page.contains(&format!("--out {}", out.to_str().unwrap())), "the copied command");
}

#[test]
fn every_command_is_in_the_document() {
    let help = succeed(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    // A line that is indented further continues the description of a command.
    let commands = commands.filter(|line| !line.starts_with("   "));
    for name in commands.filter_map(|line| line.split_whitespace().next()) {
        let in_heading = |line: &str| {
            line.strip_prefix("## ").is_some_and(|names| names.split(", ").any(|n| n == name))
        };
        let elsewhere = ["help", "man", "completions"].contains(&name);
        assert!(elsewhere || CLI.lines().any(in_heading), "docs/cli.md has no section '{name}'");
    }
}

#[test]
fn what_would_mend_a_requirement_is_searched_if_no_control_meets_it() {
    // A hundred requests of 100 bytes at once on 8 kbit/s: the n-th one is answered after 0.1 s
    // times n, so 50 are in time.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    let text = "name = \"x\"\ntitle = \"x\"\n[require]\nin_time = 1.0\n\
        [network.up]\nrate = \"8 kbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
        [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
        [clients]\ncount = 100\n[coap]\nack_timeout = \"600 s\"\n\
        [workload]\nkind = \"continuous\"\nexchanges = 1\nrequest_payload = 61\nresponse_payload = 0\n\
        deadline = \"5.05 s\"\n";
    std::fs::write(&file, text).unwrap();
    let place = file.to_str().unwrap();
    let run = |more: &[&str]| {
        let fixed = ["run", place, "--cc", "default", "--reps", "1"];
        succeed(&fixed.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let document: serde_json::Value = serde_json::from_str(&run(&["--mend", "--json"])).unwrap();
    let mend = document["mend"].as_array().unwrap();
    let of = |key: &str| {
        mend.iter().flat_map(|one| one.as_array().unwrap()).find(|one| one["key"] == key)
    };
    assert_eq!(of("clients.count").unwrap()["meets"], "50");
    let words = run(&["--mend"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("Enough, each by itself: ")
            && words.contains("clients.count up to 50 (default)"),
        "{words}"
    );
    // A requirement that is met needs no remedy, and nothing is searched.
    let met = run(&["--mend", "--set", "clients=50"]);
    assert!(!met.contains("Enough"), "{met}");
}
